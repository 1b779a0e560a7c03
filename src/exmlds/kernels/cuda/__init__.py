"""Operations on a graphics card, with the signatures of their twins in `reference/`.

They take and give arrays of the host. Operations that are not here run on the CPU.
"""
