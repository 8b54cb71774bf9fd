"""What several families need to reason with: crashes told apart, places counted, claims made."""
