// Eager pointwise operators. The common call (contiguous operands of one shape) takes a short path with one cached kernel per operator and
// dtypes; any other layout goes through collapsed dimensions, with sizes and strides as parameters of the kernel.
import type { Arg, OpDef } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import { dtypeInfo, withPointers } from '../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { Storage, Tensor, sameShape } from '../../tensor/index.ts'
import { broadcastStrides, collapseLayout } from './layout.ts'
import { flatKernel, isFixedStride, layoutKernel } from './pointwiseKernels.ts'
import type { NumberUse } from './pointwiseKernels.ts'
import { pointwiseDTypes, pointwiseSpec } from './pointwiseTypes.ts'

interface FlatKernel {
  readonly run: CompiledKernel['run']
  readonly result: DType
}

/** What is known of an operator's kernels. */
interface OpKernels {
  /** By signature; a string where literal arguments are part of it. */
  readonly flat: Map<number | string, FlatKernel>
  readonly layout: Map<string, CompiledKernel>
  /** Per argument: whether its number is for the rule to look at. */
  readonly baked: readonly boolean[]
  /** Per argument: the default of an option such as alpha, which is built in as a constant; NaN for none. */
  readonly defaults: readonly number[]
}

const known = new WeakMap<OpDef, OpKernels>()
// Nearly all calls of a loop alternate between few operators: a slot per id saves the hash lookup.
const byId: (OpKernels | undefined)[] = []

function kernelsOf(op: OpDef): OpKernels {
  let kernels = known.get(op)
  if (kernels === undefined) {
    const baked = op.pointwise?.baked ?? []
    kernels = {
      flat: new Map(),
      layout: new Map(),
      baked: op.schema.args.map((a) => baked.includes(a.name)),
      defaults: op.schema.args.map((a) => (a.kwargOnly && typeof a.default === 'number' ? a.default : NaN)),
    }
    known.set(op, kernels)
    if (op.id >= 0) byId[op.id] = kernels
  }
  return kernels
}

const codeOf = (dtype: DType): number => (dtype === 'float32' ? 1 : dtype === 'int32' ? 2 : dtype === 'bool' ? 3 : 4)

// Codes of arguments in a signature, base 16: 1 to 4 tensors by dtype; then
const [INTEGER, FRACTION, DEFAULT, NULL, LITERAL] = [5, 6, 7, 8, 9]

function numberCode(kernels: OpKernels, arg: number, i: number): number {
  if (kernels.baked[i] === true) return LITERAL
  if (arg === kernels.defaults[i]) return DEFAULT
  return Number.isInteger(arg) ? INTEGER : FRACTION
}

function usesOf(kernels: OpKernels, op: OpDef, args: readonly Arg[]): NumberUse[] {
  return args.map((arg, i) => {
    if (typeof arg === 'number') {
      const code = numberCode(kernels, arg, i)
      return code === LITERAL ? 'literal' : code === DEFAULT ? 'constant' : 'parameter'
    }
    return typeof arg === 'boolean' && op.schema.args[i]?.type.base === 'Scalar' ? 'constant' : 'literal'
  })
}

/** Runs the operator on real tensors into `out`, or into a new tensor. Throws ShapeError when the operands do not broadcast. */
export function launchPointwise(op: OpDef, args: readonly Arg[], out: Tensor | null): Tensor {
  const kernels = byId[op.id] ?? kernelsOf(op)
  let first: Tensor | null = null
  let flat = true
  let signature = 0
  let literals = ''
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] as Arg
    let code: number
    if (arg instanceof Tensor) {
      code = codeOf(arg.dtype)
      if (first === null) {
        first = arg
        // A tensor without dimensions promotes differently, see pointwiseDTypes.
        flat = arg.contiguousLayout && arg.shape.length > 0
      } else if (flat) flat = arg.contiguousLayout && sameShape(first.shape, arg.shape)
    } else if (typeof arg === 'number') {
      code = numberCode(kernels, arg, i)
      if (code === LITERAL) literals += `${arg},`
    } else if (arg === null) code = NULL
    else {
      code = LITERAL
      literals += `${String(arg)},`
    }
    signature = signature * 16 + code
  }
  if (out !== null) {
    if (flat) flat = out.contiguousLayout && first !== null && sameShape(first.shape, out.shape)
    signature = -(signature * 16 + codeOf(out.dtype))
  }
  if (!flat || first === null || args.length > 10) return runLayout(op, kernels, args, out, signature, literals)
  const key = literals === '' ? signature : `${signature}|${literals}`
  let kernel = kernels.flat.get(key)
  if (kernel === undefined) {
    const { result } = pointwiseDTypes(op, args)
    kernel = { run: flatKernel(op, args, usesOf(kernels, op, args), out?.dtype ?? result).run, result }
    kernels.flat.set(key, kernel)
  }
  const target = out ?? emptyLike(first, kernel.result)
  runFlat(kernels, kernel, args, target)
  return target
}

/** A new tensor of a contiguous tensor's shape; shares its shape and strides. */
function emptyLike(like: Tensor, dtype: DType): Tensor {
  return new Tensor(like.shape, dtype, Storage.allocate(like.numel * dtypeInfo[dtype].size), like.strides)
}

function runFlat(kernels: OpKernels, kernel: FlatKernel, args: readonly Arg[], out: Tensor): void {
  const outBlock = out.realize().block
  let resident = outBlock.ptr !== 0
  const pointers = [outBlock.ptr + out.offset * dtypeInfo[out.dtype].size]
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (!(arg instanceof Tensor)) continue
    const { ptr } = (arg.storage ?? arg.realize()).block
    if (ptr === 0) resident = false
    pointers.push(ptr + arg.offset * dtypeInfo[arg.dtype].size)
  }
  const first = pointers.length
  pointers.push(out.numel)
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (typeof arg === 'number' && isParameter(kernels, arg, i)) pointers.push(arg)
  }
  if (resident) callKernel(kernel.run, pointers)
  else runSpilled(kernel.run, [out, ...(args.filter((a) => a instanceof Tensor) as Tensor[])], pointers.slice(first))
}

function isParameter(kernels: OpKernels, arg: number, i: number): boolean {
  return kernels.baked[i] !== true && arg !== kernels.defaults[i]
}

/** `run(...p)`, without the cost of a spread for the usual counts. */
function callKernel(run: CompiledKernel['run'], p: readonly number[]): void {
  if (p.length === 3) run(p[0] as number, p[1] as number, p[2] as number)
  else if (p.length === 4) run(p[0] as number, p[1] as number, p[2] as number, p[3] as number)
  else if (p.length === 5) run(p[0] as number, p[1] as number, p[2] as number, p[3] as number, p[4] as number)
  else run(...p)
}

/** Some operand is off the heap: bring it there for the call. */
function runSpilled(run: CompiledKernel['run'], tensors: readonly Tensor[], rest: readonly number[]): void {
  withPointers(
    tensors.map((t) => t.realize().block),
    tensors.map((_, i) => i === 0),
    (pointers) => run(...pointers.map((p, i) => p + (tensors[i] as Tensor).offset * dtypeInfo[(tensors[i] as Tensor).dtype].size), ...rest),
  )
}

function runLayout(op: OpDef, kernels: OpKernels, args: readonly Arg[], given: Tensor | null, signature: number, literals: string): Tensor {
  const spec = pointwiseSpec(op, args)
  const { shape } = spec
  if (given !== null && !sameShape(given.shape, shape)) throw new InternalError(`${op.qualname}: in-place result has another shape`)
  const out = given ?? Tensor.empty(shape, spec.dtype)
  if (out.numel === 0) return out
  const tensors: Tensor[] = [out]
  const strides = [out.strides]
  // Promotion depends on which operands have no dimensions.
  let key = `${signature}|${literals}|`
  for (const arg of args) {
    if (!(arg instanceof Tensor)) continue
    tensors.push(arg)
    strides.push(broadcastStrides(arg, shape))
    if (arg.ndim === 0) key += `z${tensors.length}`
  }
  const layout = collapseLayout(shape, strides)
  const rank = layout.dims.length
  const rest = layout.dims.slice()
  for (const operand of layout.strides) {
    for (let d = 0; d < rank; d++) {
      const stride = operand[d] as number
      if (isFixedStride(stride, d, rank)) key += stride === 0 ? '0' : '1'
      else {
        key += 's'
        rest.push(stride)
      }
    }
    key += ','
  }
  let kernel = kernels.layout.get(key)
  if (kernel === undefined) {
    kernel = layoutKernel(op, args, usesOf(kernels, op, args), out.dtype, layout)
    kernels.layout.set(key, kernel)
  }
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (typeof arg === 'number' && isParameter(kernels, arg, i)) rest.push(arg)
  }
  const pointers: number[] = []
  let resident = true
  for (const t of tensors) {
    const { ptr } = t.realize().block
    if (ptr === 0) resident = false
    pointers.push(ptr + t.offset * dtypeInfo[t.dtype].size)
  }
  if (resident) kernel.run(...pointers, ...rest)
  else runSpilled(kernel.run, tensors, rest)
  return out
}
