"""The mathematics: functions on arrays, without I/O or printing."""
