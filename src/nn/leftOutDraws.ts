// Layers whose parameters are replaced at once need no initial values: drawing them would take time, and move the random generator on.
let isLeftOut = false

/** Whether initial values are not drawn now. */
export const drawsAreLeftOut = (): boolean => isLeftOut

/** Runs `make` without drawing initial values. PyTorch's `torch.nn.utils.skip_init`. */
export function withoutDraws<T>(make: () => T): T {
  const outer = isLeftOut
  isLeftOut = true
  try {
    return make()
  } finally {
    isLeftOut = outer
  }
}
