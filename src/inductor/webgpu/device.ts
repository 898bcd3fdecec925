// Tensors with device 'webgpu': how they get there and back, and who computes with them.
import { decomposed, devices, dispatch, isArgList, isOnDevice, runKernel, withDevice } from '../../dispatch/index.ts'
import type { Arg, DeviceOperators, OpDef, Result } from '../../dispatch/index.ts'
import { ArgumentError, InternalError, UnsupportedError } from '../../errors/index.ts'
import { engineNow } from '../../gpu/engine.ts'
import { DeviceReadError } from '../../gpu/errors.ts'
import { dtypeInfo, isComplexDType } from '../../kernels/index.ts'
import type { Block } from '../../kernels/index.ts'
import { clone, defineCustomOp, toCopy } from '../../ops/index.ts'
import { inPlaceSpec } from '../../ops/eager/inPlace.ts'
import type { OpFunction } from '../../ops/index.ts'
import { Storage, Tensor } from '../../tensor/index.ts'
import type { Device } from '../../tensor/index.ts'
import { placeOf } from './calls.ts'
import { copyOnDevice, giveOnDevice, runPlanned } from './eager.ts'
import { DeviceMemory, WAIT, heapNow, newFate, overFate } from './memory.ts'
import { wordsOf } from './words.ts'

/** The tensors among arguments, each with the name of its argument. */
function tensorsIn(op: OpDef, args: readonly Arg[]): readonly (readonly [string, Tensor])[] {
  return args.flatMap((arg, i): readonly (readonly [string, Tensor])[] => {
    const name = op.schema.args[i]?.name ?? `#${i}`
    if (arg instanceof Tensor) return [[name, arg]]
    if (!isArgList(arg)) return []
    return arg.flatMap((item, k) => (item instanceof Tensor ? [[`${name}[${k}]`, item] as const] : []))
  })
}

/** The arguments with all tensors replaced. */
const mapTensors = (args: readonly Arg[], fn: (tensor: Tensor) => Tensor): Arg[] =>
  args.map((arg) => (arg instanceof Tensor ? fn(arg) : isArgList(arg) ? mapTensors(arg, fn) : arg))

/** A copy of a tensor on the GPU. Throws UnsupportedError for dtypes that shaders do not have. */
function uploaded(tensor: Tensor): Tensor {
  if (tensor.device !== 'cpu') return tensor
  const { dtype } = tensor
  if (isComplexDType(dtype) || dtype === 'float64')
    throw new UnsupportedError(`webgpu has no ${dtype}: convert the tensor first, as in x.to('float32').to('webgpu').`)
  const source = tensor.contiguousLayout ? tensor : withDevice('cpu', () => clone(tensor))
  const heap = heapNow()
  const fate = tensor.numel > 0 ? newFate() : overFate()
  const memory = new DeviceMemory(heap, dtype, tensor.numel, fate)
  if (tensor.numel > 0)
    heap.post({ kind: 'write', heap: heap.memory, slab: memory.slab, start: memory.start, words: wordsOf(source, tensor.numel) }, fate)
  return new Tensor(tensor.sizes, dtype, Storage.late(tensor.numel * dtypeInfo[dtype].size, memory))
}

/** A copy of a tensor in the program's memory. Where the program cannot wait for it, its data comes later. */
function downloaded(tensor: Tensor): Tensor {
  const storage = tensor.realize()
  if (storage.onDevice === null) return tensor
  const copy = (bytes: Uint8Array): Storage => {
    const made = Storage.allocate(bytes.length, tensor.sizes, tensor.dtype)
    made.writeBytes(bytes)
    return made
  }
  if (tensor.numel === 0) return Tensor.empty(tensor.sizes, tensor.dtype)
  const { memory } = placeOf(tensor)
  const made = memory.isHere ? copy(memory.read()) : laterCopy(memory, copy)
  return new Tensor(tensor.sizes, tensor.dtype, made, tensor.steps, tensor.offset)
}

function laterCopy(memory: DeviceMemory, copy: (bytes: Uint8Array) => Storage): Storage {
  let block: Block | null = null
  let failure: { readonly error: unknown } | null = null
  const ended = memory.readLater().then(
    (bytes) => {
      ;({ block } = copy(bytes))
    },
    (error: unknown) => {
      failure = { error }
    },
  )
  const take = (): Block => {
    if (failure !== null) throw failure.error
    if (block === null) throw new DeviceReadError(WAIT)
    return block
  }
  const arrive = async (): Promise<void> => {
    await ended
    take()
  }
  return Storage.late(memory.numel * dtypeInfo[memory.dtype].size, {
    take,
    arrive,
    get isHere() {
      return block !== null
    },
  })
}

/** The tensor on another device. PyTorch's `_to_copy` with a device. */
const toDevice: OpFunction<(self: Tensor, device: Device) => Tensor> = defineCustomOp({
  schema: 'to_device(Tensor self, str device) -> Tensor',
  namespace: 'torch.ops.tensorfx',
  tags: ['rejectsData'],
  vmap: { leading: ['self'] },
  onnx: 'identity',
  autocast: 'as is',
  meta: (self, device) => ({ shape: self.symSizes, dtype: self.dtype, device: device === 'cpu' ? 'cpu' : 'webgpu' }),
  kernel: (self, device) => (device === 'cpu' ? downloaded(self) : uploaded(self)),
  derivative: ([g], { args: [x] }) => [g === null || g === undefined || !(x instanceof Tensor) ? null : move(g, x.device), null],
})

const move = (tensor: Tensor, device: Device): Tensor => (tensor.device === device ? tensor : toDevice(tensor, device))

/** Operators that take tensors of several devices. */
const ACROSS: ReadonlySet<string> = new Set(['torch.Tensor.copy_', 'torch.Tensor.to', 'torch.ops.tensorfx.to_device'])

/** Throws ArgumentError for tensors of several devices; one without dimensions may be anywhere, as a number. */
function checkDevices(op: OpDef, args: readonly Arg[]): void {
  if (ACROSS.has(op.qualname)) return
  const tensors = tensorsIn(op, args)
  const there = tensors.find(([, tensor]) => tensor.device !== 'cpu')
  const other = tensors.find(([, tensor]) => tensor.device === 'cpu' && tensor.ndim > 0)
  if (there === undefined || other === undefined) return
  throw new ArgumentError(
    `${op.qualname}: all tensors must be on one device, but argument '${there[0]}' is on '${there[1].device}' and argument '${other[0]}' on 'cpu'. Move one of them: ${other[0]}.to('${there[1].device}').`,
  )
}

/** A refusal that names the operator, and says what can be done. */
function refusal(op: OpDef, error: UnsupportedError): UnsupportedError {
  const why = error.message.replace(/^WebGPU: /, '').replace(/\.? Let WebAssembly compute it:.*$/, '')
  return new UnsupportedError(
    `${op.qualname} has no form for tensors on webgpu: ${why}. Compute it in the program's memory, x.to('cpu'), or call init({ fallback: 'wasm' }), which does so for every such operator.`,
    { cause: error },
  )
}

/** Runs an operator in the program's memory, on copies of its tensors; what it returns goes to the GPU. */
function onCopies(op: OpDef, args: readonly Arg[]): Result {
  return withDevice('cpu', () => {
    const result = runKernel(op, mapTensors(args, downloaded))
    return result instanceof Tensor ? uploaded(result) : result.map(uploaded)
  })
}

/** A functional operator on the GPU. */
function functional(op: OpDef, given: readonly Arg[]): Result {
  const args = mapTensors(given, uploaded)
  if (op.tags.has('dataShape') || op.tags.has('custom')) {
    const why = op.tags.has('custom') ? 'it is a function of the program, which looks at memory' : 'the shape of its result depends on data'
    return refused(op, args, new UnsupportedError(why))
  }
  // No data decides what comes of nothing.
  if (tensorsIn(op, args).every(([, { numel }]) => numel === 0)) return onCopies(op, args)
  try {
    return runPlanned(op, args)
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error
    if (op.decompose !== null) return decomposed(op.qualname, op.decompose, args)
    return refused(op, args, error)
  }
}

function refused(op: OpDef, args: readonly Arg[], error: UnsupportedError): Result {
  const { options, canWait } = engineNow()
  if (options.fallback !== 'wasm' || !canWait) throw refusal(op, error)
  return onCopies(op, args)
}

/** An in-place operator: what `pure` computes is written to the memory of its first argument. */
function inPlace(op: OpDef, pure: OpDef, args: readonly Arg[]): Result {
  const [self] = args
  if (!(self instanceof Tensor)) throw new InternalError(`${op.qualname} has no tensor to write to`)
  if (self.device === 'cpu') return withDevice('cpu', () => runKernel(op, mapTensors(args, downloaded)))
  inPlaceSpec(op.qualname, pure, args)
  self.realize().announceWrite()
  const computed = functional(pure, args)
  const result = computed instanceof Tensor && computed.dtype !== self.dtype ? functional(toCopy.op, [computed, self.dtype]) : computed
  if (!(result instanceof Tensor)) throw new InternalError(`${op.qualname} has several results`)
  giveOnDevice(result, self)
  self.realize().version++
  return self
}

/** What runs operators on tensors of the GPU. */
export const deviceOperators: DeviceOperators = {
  begins: (args) => devices.here === 'cpu' && args.some(isOnDevice),
  within(op, args, asIs) {
    checkDevices(op, args)
    return withDevice('webgpu', () => dispatch(op, args, asIs))
  },
  forGradients: (grads, derivative) => (devices.here === 'cpu' && grads.some(isOnDevice) ? withDevice('webgpu', derivative) : derivative()),
  run(op, args) {
    if (op === toDevice.op) return null
    if (!args.some(isOnDevice)) return devices.here === 'cpu' || tensorsIn(op, args).length > 0 ? null : onCopies(op, args)
    const { kernel, decompose, functional: pure } = op
    if (pure !== null) return inPlace(op, pure, args)
    if (op.tags.has('view') && kernel !== null) return view(op, kernel, args)
    return kernel === null && decompose !== null ? null : functional(op, args)
  },
  move,
  crosses(op, args) {
    if (op === toDevice.op) return true
    const [self, other] = args
    if (op.functional === null || !(self instanceof Tensor)) return false
    return self.device === 'cpu' ? args.some(isOnDevice) : ACROSS.has(op.qualname) && other instanceof Tensor && other.device === 'cpu'
  },
  allocate: (dtype, numel) => Storage.late(numel * dtypeInfo[dtype].size, new DeviceMemory(heapNow(), dtype, numel, overFate())),
  copy: copyOnDevice,
}

/** A view: the same memory in another layout. */
function view(op: OpDef, kernel: NonNullable<OpDef['kernel']>, args: readonly Arg[]): Result {
  const result = kernel(...args)
  const [self] = args
  const first = result instanceof Tensor ? result : result[0]
  if (self instanceof Tensor && first !== undefined && first.dtype !== self.dtype)
    throw refusal(op, new UnsupportedError(`${self.dtype} elements cannot be seen as ${first.dtype}`))
  return result
}
