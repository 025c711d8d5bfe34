"""Files that other programs open: ParaView series (`vtu`) and pictures (`png`), each written whole or not at all."""
