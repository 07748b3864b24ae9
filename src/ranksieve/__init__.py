"""ranksieve: learning to rank for the second stage of a search system.

`__init__.pyi` lists the public names. Each is imported when it is first used: `import ranksieve` loads no library.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
