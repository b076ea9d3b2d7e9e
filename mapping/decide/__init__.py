"""What becomes of a record once its evidence has been looked for: policies, rules of acceptance, splits."""
