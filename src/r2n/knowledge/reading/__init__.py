"""What is known: tables of facts as people bring them."""
