// Floating-point operations of one operator call, by FlopCounterMode's rules: 2 for each multiplication with its addition. Operators without a row here count as 0, since products and
// convolutions dominate; composites (matmul, conv3d, attention) count as the operators that they consist of.
import { tensorAt } from '../../dispatch/index.ts'
import type { Arg, OpDef, Result } from '../../dispatch/index.ts'
import { bmm, convolution, convolutionBackward, linear, mm } from '../../ops/index.ts'
import { Tensor } from '../../tensor/index.ts'

/** The operations of a call, from its arguments and its first result: of tensors only the shapes, of others only flags (see signatures.ts). */
export type Formula = (args: readonly Arg[], result: Tensor) => number

/** The multiplications behind each element of a convolution's output: the channels of a group times the window. */
const perOutput = (weight: Tensor): number => weight.numel / Math.max(1, weight.sizes[0] ?? 1)

/** Each element of `result` is a sum over the last dimension of the first argument. */
const product: Formula = (args, result) => 2 * result.numel * (tensorAt(args, 0).sizes.at(-1) ?? 1)

/** One row for each operator that multiplies and adds; PyTorch's `flop_registry`. */
const formulas: ReadonlyMap<unknown, Formula> = new Map<unknown, Formula>([
  [mm, product],
  [bmm, product],
  [linear, product],
  [convolution, (args, result) => 2 * result.numel * perOutput(tensorAt(args, 1))],
  // Each gradient pairs every output with every input behind it once, as the forward does.
  [convolutionBackward, (args) => (Number(args[7] === true) + Number(args[8] === true)) * 2 * tensorAt(args, 0).numel * perOutput(tensorAt(args, 2))],
])

/** Whether the call of an operator is counted as a whole. */
export const hasFormula = (op: OpDef): boolean => formulas.has(op.fn)

/** How the floating-point operations of an operator's calls are counted; null for one that counts as 0. */
export const formulaOf = (op: OpDef): Formula | null => formulas.get(op.fn) ?? null

/** The floating-point operations of a call. */
export function flopsOf(op: OpDef, args: readonly Arg[], result: Result): number {
  const formula = formulaOf(op)
  const first = result instanceof Tensor ? result : result[0]
  return formula === null || first === undefined ? 0 : formula(args, first)
}
