"""Models other than a single forest: linear ones, nets, blends, forests that predict grades; and `load` for all."""
