// Eager pointwise operators. The common call (contiguous operands of one shape) takes a short path, with one cached kernel per operator and
// dtypes. Any other layout has its dimensions collapsed, and its kernel takes sizes and strides as parameters.
import type { Arg } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import { PerEngine, compete, dtypeInfo, kernelBytes, kernelsByCall, kernelsByLiterals, knownScratchBytes } from '../../kernels/index.ts'
import type { CompiledKernel, DType } from '../../kernels/index.ts'
import { dtypes, getDefaultDtype, numbersOf, sameShape, Storage, Tensor } from '../../tensor/index.ts'
import { cacheKey, launchSpilled, scratchIfRoom } from './launch.ts'
import { launches } from './launchLog.ts'
import { broadcastStrides, collapseLayout } from './layout.ts'
import type { Layout } from './layout.ts'
import { flatKernel, isFixedStride, layoutKernel } from './pointwiseKernels.ts'
import type { NumberUse } from './pointwiseKernels.ts'
import { pointwiseDTypes, pointwiseSpec } from './pointwiseTypes.ts'
import type { PointwiseOp } from './pointwiseTypes.ts'

interface FlatKernel {
  readonly run: CompiledKernel['run']
  readonly result: DType
}

/** The kernels of one operator. */
interface OpKernels {
  /** By signature. Kernels with literal arguments are in the cache of all operators, since there can be any number of them. */
  readonly flat: Map<number, FlatKernel>
  /** The first part of the keys of its kernels in the caches of all operators. */
  readonly key: string
  /** Per argument: whether the rule looks at its value. */
  readonly baked: readonly boolean[]
  /** Per argument: the default of an option such as alpha, which the kernel has built in as a constant; NaN if there is none. */
  readonly defaults: readonly number[]
}

/** What is known of operators. `byId` has a slot per operator id: faster than the hash lookup. */
const known = new PerEngine((): { readonly byOp: WeakMap<PointwiseOp, OpKernels>; readonly byId: (OpKernels | undefined)[] } => ({
  byOp: new WeakMap(),
  byId: [],
}))

function kernelsOf(op: PointwiseOp): OpKernels {
  const { byOp, byId } = known.current
  let kernels = byOp.get(op)
  if (kernels === undefined) {
    const baked = op.pointwise?.baked ?? []
    kernels = {
      flat: new Map(),
      key: cacheKey(),
      baked: op.schema.args.map((a) => baked.includes(a.name)),
      defaults: op.schema.args.map((a) => (a.kwargOnly && typeof a.default === 'number' ? a.default : NaN)),
    }
    byOp.set(op, kernels)
    if (op.id >= 0) byId[op.id] = kernels
  }
  return kernels
}

/** The code of each dtype in a signature, from 1 on. */
const CODES = new Map(dtypes.map((dtype, i): [DType, number] => [dtype, i + 1]))
const OTHER = CODES.size
const FLOAT32 = CODES.get('float32') ?? 0

function codeOf(dtype: DType): number {
  return dtype === 'float32' ? FLOAT32 : (CODES.get(dtype) ?? 0)
}

// The code of each argument in a signature, a digit in base 16: tensors by dtype, then these.
const [INTEGER, FRACTION, DEFAULT, NULL, LITERAL] = [OTHER + 1, OTHER + 2, OTHER + 3, OTHER + 4, OTHER + 5]

function numberCode(kernels: OpKernels, arg: number, i: number): number {
  if (kernels.baked[i] === true) return LITERAL
  if (arg === kernels.defaults[i]) return DEFAULT
  return Number.isInteger(arg) ? INTEGER : FRACTION
}

function usesOf(kernels: OpKernels, op: PointwiseOp, args: readonly Arg[]): NumberUse[] {
  return args.map((arg, i) => {
    if (typeof arg === 'number') {
      const code = numberCode(kernels, arg, i)
      return code === LITERAL ? 'literal' : code === DEFAULT ? 'constant' : 'parameter'
    }
    return typeof arg === 'boolean' && op.schema.args[i]?.type.base === 'Scalar' && kernels.baked[i] !== true ? 'constant' : 'literal'
  })
}

/**
 * Runs the operator on real tensors into `out`, or into a new tensor if that is null. Throws ShapeError if the operands do not broadcast. `check` is called
 * before anything is written, unless a call with the same dtypes, and operands of equal shape, has passed it before.
 */
export function launchPointwise(op: PointwiseOp, args: readonly Arg[], out: Tensor | null, check?: () => void): Tensor {
  const kernels = known.current.byId[op.id] ?? kernelsOf(op)
  let first: Tensor | null = null
  let flat = true
  // Where operands are lifted to the default dtype, the kernel depends on it.
  const lifted = getDefaultDtype()
  let signature = lifted === 'float32' ? 0 : codeOf(lifted)
  let literals = ''
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    let code: number
    if (arg instanceof Tensor) {
      code = codeOf(arg.dtype)
      if (first === null) {
        first = arg
        // A tensor without dimensions promotes differently: see pointwiseDTypes.
        flat = arg.contiguousLayout && arg.sizes.length > 0
      } else if (flat) flat = arg.contiguousLayout && sameShape(first.symSizes, arg.symSizes)
    } else if (typeof arg === 'number') {
      code = numberCode(kernels, arg, i)
      if (code === LITERAL) literals += Object.is(arg, -0) ? '-0,' : `${arg},`
    } else if (arg === null) code = NULL
    else {
      code = LITERAL
      literals += `${String(arg)},`
    }
    signature = signature * 16 + code
  }
  if (out !== null) {
    if (flat) flat = out.contiguousLayout && first !== null && sameShape(first.symSizes, out.symSizes)
    signature = -(signature * 16 + codeOf(out.dtype))
  }
  if (!flat || first === null || args.length > 10) {
    check?.()
    return runLayout(op, kernels, args, out, signature, literals)
  }
  let kernel = literals === '' ? kernels.flat.get(signature) : kernelsByLiterals.get(`${kernels.key} ${signature}|${literals}`)
  if (kernel === undefined) {
    check?.()
    const { result } = pointwiseDTypes(op, args)
    const compiled = { ...flatKernel(op, args, usesOf(kernels, op, args), out?.dtype ?? result), result }
    if (literals === '') kernels.flat.set(signature, compiled)
    else kernelsByLiterals.set(`${kernels.key} ${signature}|${literals}`, compiled, kernelBytes(compiled))
    kernel = compiled
  }
  const target = out ?? emptyLike(first, kernel.result)
  runFlat(kernels, kernel, args, target)
  return target
}

/** A new tensor with the shape and strides of a contiguous one. */
function emptyLike(like: Tensor, dtype: DType): Tensor {
  return new Tensor(like.sizes, dtype, Storage.allocate(like.numel * dtypeInfo[dtype].size, like.sizes, dtype), like.steps, 0, like)
}

/** The address of a tensor's first element, 0 for one that is not on the heap. */
function addressOf(tensor: Tensor): number {
  const { ptr } = (tensor.storage ?? tensor.realize()).block
  return ptr === 0 ? 0 : ptr + tensor.offset * dtypeInfo[tensor.dtype].size
}

function runFlat(kernels: OpKernels, { run }: FlatKernel, args: readonly Arg[], out: Tensor): void {
  // The usual calls have up to three operands and one number: they need no list.
  const target = addressOf(out)
  const { numel } = out
  let [a, b, c, number] = [0, 0, 0, 0]
  let operands = 0
  let numbers = 0
  let usual = target !== 0
  for (let i = 0; usual && i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) {
      const address = addressOf(arg)
      if (operands === 0) a = address
      else if (operands === 1) b = address
      else c = address
      operands++
      usual = address !== 0 && operands <= 3
    } else if (typeof arg === 'number' && isParameter(kernels, arg, i)) {
      number = arg
      numbers++
      usual = numbers === 1
    }
  }
  if (!usual || launches.listener !== null) runWithList(kernels, run, args, out)
  else if (numbers === 0) {
    if (operands === 1) run(target, a, numel)
    else if (operands === 2) run(target, a, b, numel)
    else run(target, a, b, c, numel)
  } else if (operands === 1) run(target, a, numel, number)
  else if (operands === 2) run(target, a, b, numel, number)
  else run(target, a, b, c, numel, number)
}

function runWithList(kernels: OpKernels, run: CompiledKernel['run'], args: readonly Arg[], out: Tensor): void {
  const addresses = [addressOf(out)]
  const numbers = [out.numel]
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg instanceof Tensor) addresses.push(addressOf(arg))
    else if (typeof arg === 'number' && isParameter(kernels, arg, i)) numbers.push(arg)
  }
  if (addresses.includes(0)) {
    launchPointwiseSpilled(run, args, out, numbers)
    return
  }
  launches.listener?.launched(run, [out, ...args.filter((arg) => arg instanceof Tensor)], numbers)
  run(...addresses, ...numbers)
}

function isParameter(kernels: OpKernels, arg: number, i: number): boolean {
  return kernels.baked[i] !== true && arg !== kernels.defaults[i]
}

function launchPointwiseSpilled(run: CompiledKernel['run'], args: readonly Arg[], out: Tensor, numbers: readonly number[]): void {
  const operands = args.filter((arg) => arg instanceof Tensor)
  launchSpilled(run, [out, ...operands], [true, ...operands.map(() => false)], numbers)
}

/** From this many elements on, transposing in tiles pays for the longer kernel, which runs slowly until the host has optimised it. */
const IN_TILES = 8192

/** The dimensions and the strides over them in the order in which a tensor of these steps lies in memory: its neighbours are written one after the other. */
function inMemoryOrder(
  shape: readonly number[],
  strides: readonly (readonly number[])[],
  steps: readonly number[],
): [shape: readonly number[], strides: readonly (readonly number[])[]] {
  if (steps.every((step, d) => d === 0 || step <= (steps[d - 1] ?? 0))) return [shape, strides]
  const order = [...steps.keys()].sort((a, b) => (steps[b] ?? 0) - (steps[a] ?? 0))
  const ordered = (list: readonly number[]): readonly number[] => order.map((d) => list[d] ?? 0)
  return [ordered(shape), strides.map(ordered)]
}

/** Whether lines of an operand compete for places in a cache while it is transposed. */
function haveCrowdedLines({ dims, strides: [target = [], ...operands] }: Layout, [, ...tensors]: readonly Tensor[]): boolean {
  const across = target.indexOf(1)
  return operands.some((steps, i) => {
    const isTurned = steps.includes(1) && steps.indexOf(1) !== across
    return isTurned && compete(dims[across] ?? 0, (steps[across] ?? 0) * dtypeInfo[tensors[i]?.dtype ?? 'int8'].size)
  })
}

function runLayout(op: PointwiseOp, kernels: OpKernels, args: readonly Arg[], given: Tensor | null, signature: number, literals: string): Tensor {
  const spec = numbersOf(pointwiseSpec(op, args))
  const { shape } = spec
  if (given !== null && !sameShape(given.sizes, shape)) throw new InternalError(`${op.qualname}: the in-place result has another shape`)
  const out = given ?? Tensor.empty(shape, spec.dtype)
  if (out.numel === 0) return out
  const tensors: Tensor[] = [out]
  const strides = [out.steps]
  // Promotion depends on which operands have no dimensions.
  let key = `${kernels.key} ${signature}|${literals}|`
  for (const arg of args) {
    if (!(arg instanceof Tensor)) continue
    tensors.push(arg)
    strides.push(broadcastStrides(arg, shape))
    if (arg.ndim === 0) key += `z${tensors.length}`
  }
  const layout = given === null ? collapseLayout(shape, strides) : collapseLayout(...inMemoryOrder(shape, strides, given.steps))
  const rank = layout.dims.length
  const rest = layout.dims.slice()
  let turns = false
  for (const operand of layout.strides) {
    for (let d = 0; d < rank; d++) {
      const stride = operand[d] ?? 0
      if (isFixedStride(stride)) {
        key += stride === 0 ? '0' : '1'
        if (stride === 1 && d < rank - 1) turns = true
      } else {
        key += 's'
        rest.push(stride)
      }
    }
    key += ','
  }
  const kernelFor = (inTiles: boolean | 'collected'): CompiledKernel => {
    const whole = `${key}${inTiles === false ? '' : String(inTiles)}`
    let kernel = kernelsByCall.get(whole)
    if (kernel === undefined) {
      kernel = layoutKernel(op, args, usesOf(kernels, op, args), out.dtype, { ...layout, inTiles })
      kernelsByCall.set(whole, kernel, kernelBytes(kernel))
    }
    return kernel
  }
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (typeof arg === 'number' && isParameter(kernels, arg, i)) rest.push(arg)
  }
  const inTiles = turns && out.numel >= IN_TILES
  let kernel = kernelFor(inTiles && haveCrowdedLines(layout, tensors) ? 'collected' : inTiles)
  if (kernel.kernel.scratch?.length) {
    const scratch = scratchIfRoom(knownScratchBytes(kernel))
    if (scratch === null) kernel = kernelFor(true)
    else rest.push(scratch)
  }
  launchOn(tensors, args, kernel, rest)
  return out
}

/** Launches a kernel; the first tensor is its result. */
function launchOn(tensors: readonly Tensor[], args: readonly Arg[], { run }: CompiledKernel, numbers: readonly number[]): void {
  const pointers: number[] = []
  let resident = true
  for (const t of tensors) {
    const { ptr } = t.realize().block
    if (ptr === 0) resident = false
    pointers.push(ptr + t.offset * dtypeInfo[t.dtype].size)
  }
  const [out] = tensors
  if (!resident && out !== undefined) {
    launchPointwiseSpilled(run, args, out, numbers)
    return
  }
  launches.listener?.launched(run, tensors, numbers)
  run(...pointers, ...numbers)
}
