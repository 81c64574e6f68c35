"""A trained network, asked: questions, answers, and problems that change after the training."""
