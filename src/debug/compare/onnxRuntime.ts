// onnxruntime-web as something to compare with: graphs are exported and run there. An optional package; WebAssembly in Node, WebGPU too in browsers.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { toOnnx } from '../../interop/onnx/index.ts'
import type { OnnxModel, OnnxValue } from '../../interop/onnx/index.ts'
import type { DType } from '../../kernels/index.ts'
import { checkCount, checkOptions } from '../../protocol/index.ts'
import { treeLeaves } from '../../pytree/index.ts'
import { contiguousStrides, storedElements, Tensor, tensorFromBytes } from '../../tensor/index.ts'

type Ort = typeof import('onnxruntime-web')
type OrtTensor = import('onnxruntime-web').Tensor
type Session = import('onnxruntime-web').InferenceSession

/** Options of `onnxSession`. */
export interface OnnxRuntimeOptions {
  /** Where the graphs run, as onnxruntime names it: `['wasm']` (default) or `['webgpu']`. */
  readonly executionProviders?: readonly ('wasm' | 'webgpu')[]
  /** Let onnxruntime fuse and rewrite the graph before it runs. Default `'all'`. */
  readonly optimize?: 'disabled' | 'basic' | 'extended' | 'all'
}

/** A graph that was loaded into onnxruntime. */
export interface OnnxSession {
  readonly model: OnnxModel
  /** Runs the graph on the tensors among its inputs; returns the tensors that it returns, in the order of `treeLeaves`. */
  run(...inputs: readonly unknown[]): Promise<readonly Tensor[]>
  /** Frees the memory that onnxruntime took for it. */
  release(): Promise<void>
}

let loaded: Promise<Ort> | null = null

const loadOnnxRuntime = async (): Promise<Ort> => (loaded ??= load())

/** Loads onnxruntime-web. Throws UnsupportedError if that is not installed. (Its types stay inside: the declarations must compile without it.) */
export async function requireOnnxRuntime(): Promise<void> {
  await loadOnnxRuntime()
}

async function load(): Promise<Ort> {
  try {
    const ort = await import('onnxruntime-web')
    // One thread: the results of a comparison should not depend on how work is divided. Only errors are printed.
    ort.env.wasm.numThreads = 1
    ort.env.logLevel = 'error'
    return ort
  } catch (error) {
    loaded = null
    throw new UnsupportedError('onnxruntime-web could not be loaded. Install it: npm install onnxruntime-web', { cause: error })
  }
}

/** Exports a graph and loads it into onnxruntime-web. Throws UnsupportedError if that is not installed, and what `toOnnx` throws. */
export async function onnxSession(gm: GraphModule, inputs: readonly unknown[], options: OnnxRuntimeOptions = {}): Promise<OnnxSession> {
  checkCount('onnxSession', arguments, 3)
  checkOptions('onnxSession', options, { executionProviders: true, optimize: true })
  const model = toOnnx(gm, { inputs })
  const ort = await loadOnnxRuntime()
  const session = await ort.InferenceSession.create(model.model, {
    executionProviders: [...(options.executionProviders ?? ['wasm'])],
    graphOptimizationLevel: options.optimize ?? 'all',
    // Errors only: which nodes run elsewhere is no concern of a comparison.
    logSeverityLevel: 3,
  })
  return {
    model,
    run: (...values) => run(ort, session, model, values),
    release: () => session.release(),
  }
}

async function run(ort: Ort, session: Session, model: OnnxModel, values: readonly unknown[]): Promise<readonly Tensor[]> {
  const tensors = treeLeaves(values).filter((leaf) => leaf instanceof Tensor)
  if (tensors.length !== model.inputs.length)
    throw new ArgumentError(`The exported graph takes ${model.inputs.length} tensors, got ${tensors.length}.`)
  const feeds: Record<string, OrtTensor> = {}
  for (const [i, input] of model.inputs.entries()) {
    const tensor = tensors[i]
    // An input that nothing uses is not one of the session's.
    if (tensor !== undefined && session.inputNames.includes(input.name)) feeds[input.name] = toOrt(ort, tensor)
  }
  const results = await session.run(feeds)
  return model.outputs.map((output) => fromOrt(results[output.name], output))
}

function toOrt(ort: Ort, tensor: Tensor): OrtTensor {
  const data = storedElements(tensor)
  const dims = [...tensor.shape]
  const { dtype } = tensor
  switch (dtype) {
    case 'bfloat16':
      throw new UnsupportedError('onnxruntime-web has no tensors of dtype bfloat16; compare the graph in float32.')
    case 'bool':
      return new ort.Tensor('bool', Uint8Array.from(data, Number), dims)
    default:
      return Reflect.construct(ort.Tensor, [dtype, data, dims])
  }
}

function fromOrt(result: OrtTensor | undefined, { name, dtype, shape }: OnnxValue): Tensor {
  if (result === undefined) throw new ArgumentError(`onnxruntime did not return '${name}'.`)
  if (result.dims.join() !== shape.join())
    throw new ArgumentError(`onnxruntime returned shape [${result.dims.join(', ')}] for [${shape.join(', ')}].`)
  return fromData(result.data, shape, dtype)
}

function fromData(data: OrtTensor['data'], shape: readonly number[], dtype: DType): Tensor {
  if (Array.isArray(data)) throw new UnsupportedError('onnxruntime returned texts.')
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
  return tensorFromBytes(bytes, shape, dtype, contiguousStrides(shape))
}
