// Kernels of pointwise operators, built from an operator's rule for one combination of dtypes, literal arguments and kind of layout.
import type { Arg, PointwiseArg } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import {
  bufferParam,
  cast,
  compileKernel,
  constant,
  load,
  loopVar,
  numberType,
  pointwiseKernel,
  rounded,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../kernels/index.ts'
import type { CompiledKernel, DType, Index, LoopVar, Param, Size } from '../../kernels/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { Layout } from './layout.ts'
import { pointwiseDTypes } from './pointwiseTypes.ts'
import type { PointwiseOp } from './pointwiseTypes.ts'

/** How an argument that is not a tensor reaches the kernel. */
export type NumberUse =
  | 'parameter' // a number that each call passes
  | 'constant' // a number built into the kernel as an operand
  | 'literal' // the value itself, for the rule to look at

/** For contiguous operands of one shape: parameters are the output, the tensors, n, then the numbers. */
export function flatKernel(op: PointwiseOp, args: readonly Arg[], uses: readonly NumberUse[], target: DType): CompiledKernel {
  const n = sizeParam('n')
  const i = loopVar('i', n)
  const index: Index = { base: 0, terms: [{ loop: i, stride: 1 }], dynamic: [] }
  return build(op, args, uses, target, [index, ...args.map(() => index)], [n], [i])
}

/** Whether a stride is part of the kernel instead of a parameter. */
export const isFixedStride = (stride: number): boolean => stride === 0 || stride === 1

/** For any layout: parameters are the output, the tensors, the sizes, the strides that are not fixed (operand by operand), then the numbers. `inTiles` is for large tensors, see {@link pointwiseKernel}. */
export function layoutKernel(
  op: PointwiseOp,
  args: readonly Arg[],
  uses: readonly NumberUse[],
  target: DType,
  layout: Layout & { readonly inTiles: boolean | 'collected' },
): CompiledKernel {
  const sizes = layout.dims.map((_, d) => sizeParam(`n${d}`))
  const loops = sizes.map((size, d) => loopVar(`i${d}`, size))
  const strideParams: Param[] = []
  const indices = layout.strides.map((strides, operand): Index => {
    const terms: { loop: LoopVar; stride: Size }[] = []
    loops.forEach((loop, d) => {
      const stride = strides[d] ?? 0
      if (stride === 0) return
      if (isFixedStride(stride)) terms.push({ loop, stride })
      else {
        const param = sizeParam(`t${operand}_${d}`)
        strideParams.push(param)
        terms.push({ loop, stride: param })
      }
    })
    return { base: 0, terms, dynamic: [] }
  })
  return build(op, args, uses, target, indices, [...sizes, ...strideParams], loops, layout.inTiles)
}

/** `indices` are those of the output and then of the tensors among the arguments. */
function build(
  op: PointwiseOp,
  args: readonly Arg[],
  uses: readonly NumberUse[],
  target: DType,
  [outIndex, ...indices]: readonly Index[],
  sizes: readonly Param[],
  loops: readonly LoopVar[],
  inTiles: boolean | 'collected' = false,
): CompiledKernel {
  const rule = op.pointwise
  if (rule === null || outIndex === undefined) throw new InternalError(`operator ${op.qualname} has no pointwise rule`)
  const { compute, result } = pointwiseDTypes(op, args)
  const out = bufferParam('out', target, 'write')
  const buffers: Param[] = []
  const scalars: Param[] = []
  const operands = args.map((arg, i): PointwiseArg => {
    if (arg instanceof Tensor) {
      const index = indices[buffers.length]
      if (index === undefined) throw new InternalError(`operator ${op.qualname}: tensor ${buffers.length} has no index`)
      const param = bufferParam(`a${buffers.length}`, arg.dtype)
      buffers.push(param)
      return cast(load(param, index), compute)
    }
    if (uses[i] === 'literal') return arg
    if (uses[i] === 'constant') return constant(compute, rounded(compute, Number(arg)))
    const param = scalarParam(`s${scalars.length}`, numberType(compute))
    scalars.push(param)
    return cast(scalar(param), compute)
  })
  const value = cast(cast(rule.compute(...operands), result), target)
  return compileKernel(
    pointwiseKernel({ name: op.name, params: [out, ...buffers, ...sizes, ...scalars], loops, body: [store(out, outIndex, value)] }, inTiles),
  )
}
