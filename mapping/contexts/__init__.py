"""What retrievers and readers of QAMPARI are trained on: questions with the passages that prove their answers."""
