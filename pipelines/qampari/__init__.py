"""The stages of `kbsource qampari`, from two releases to questions with proofs."""
