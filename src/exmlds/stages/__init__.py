"""The mathematics: functions on arrays, no files, no printing. A stage never imports another."""
