document.querySelectorAll("pre.command").forEach(function (block) {
  var button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", function () {
    navigator.clipboard.writeText(block.textContent).then(function () {
      button.textContent = "Copied";
    }, function () {
      button.textContent = "Select it to copy";
    });
  });
  block.parentNode.insertBefore(button, block);
});
window.addEventListener("beforeprint", function () {
  document.querySelectorAll("details").forEach(function (part) { part.open = true; });
});
