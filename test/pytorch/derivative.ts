// A second judge of gradients: the derivative by central differences in float64. It tells a gradient that is wrong here from one that PyTorch has recorded wrongly.

/** A number of an input that is moved: `element` of `leaf`; of complex numbers, real and imaginary parts are elements of their own. */
export interface Shift {
  readonly leaf: number
  readonly element: number
  readonly by: number
}

const STEP = 1e-5
/** Far more than the error of the differences, and that of a gradient computed in float32. */
const near = (a: number | undefined, b: number | undefined): boolean => Math.abs(Number(a) - Number(b)) <= 1e-4 * (1 + Math.abs(Number(b)))

/** Whether `ours` is the derivative of the loss, each number of each leaf, and `recorded` is not. */
export function isRefuted(recorded: readonly ArrayLike<number>[], ours: readonly ArrayLike<number>[], lossAt: (shift: Shift) => number): boolean {
  const derivative = ours.map((list, leaf) =>
    Array.from(list, (_, element) => (lossAt({ leaf, element, by: STEP }) - lossAt({ leaf, element, by: -STEP })) / (2 * STEP)),
  )
  const holds = (gradients: readonly ArrayLike<number>[]): boolean =>
    derivative.every((list, leaf) => gradients[leaf]?.length === list.length && list.every((want, i) => near(gradients[leaf]?.[i], want)))
  return holds(ours) && !holds(recorded)
}
