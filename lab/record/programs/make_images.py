"""Write a small image data set: textures whose direction and pitch tell the class."""

import sys, numpy as np, pathlib
out=pathlib.Path(sys.argv[1]); out.mkdir(parents=True, exist_ok=True)
rng=np.random.default_rng(0); n,per=640,160
labels=rng.integers(0,10,n); 
yy,xx=np.mgrid[0:32,0:32]
for s in range(n//per):
    a=np.stack([np.sin((xx*np.cos(l)+yy*np.sin(l))*(0.3+0.1*l))+0.3*rng.normal(size=(32,32)) for l in labels[s*per:(s+1)*per]]).astype("f4")
    np.save(out/f"shard_{s}.npy",a)
np.savez(out/"labels.npz",labels=labels)
