// The libraries of bench:ops. Each makes of a case a function that computes it once, on one thread, and one that reads the result; null if it lacks the operator.
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compile, fx, noGrad, torch } from 'tensorfx'
import { toOnnx } from 'tensorfx/interop/onnx'

// They are installed in a folder of their own, since they are larger than all that tensorfx needs for its development.
const { resolve } = createRequire(new URL('others/package.json', import.meta.url))
const load = async (name) => {
  const module = await import(pathToFileURL(resolve(name)))
  return module.default ?? module
}
const mapValues = (object, fn) => Object.fromEntries(Object.entries(object).map(([key, value]) => [key, fn(value)]))

const oursOf = ({ inputs }, { tensor } = torch) =>
  mapValues(inputs, ({ data, shape }) => (data instanceof Int32Array ? tensor(data).long() : tensor(data)).view(shape))

/** A build of tensorfx, eager and compiled. Each result is released when the next is wanted, as the other libraries do. A case that `trains` records gradients. */
export function tensorfx(build) {
  const released = (compute, { trains = false }) => {
    let last = null
    const run = () => {
      last?.dispose()
      last = trains ? compute() : build.noGrad(compute)
      return last
    }
    return { run, read: (y) => y.toTypedArray() }
  }
  return {
    eager(one) {
      const given = oursOf(one, build.torch)
      return released(() => one.ours(given), one)
    },
    compiled(one) {
      const given = oursOf(one, build.torch)
      const fast = build.compile((values) => one.ours(values))
      return released(() => fast(given), one)
    },
  }
}

export const { eager, compiled } = tensorfx({ compile, noGrad, torch })

/** onnxruntime-web runs our export of the operator. */
export async function onnxruntime({ inputs, ours }) {
  const ort = await load('onnxruntime-web')
  ort.env.wasm.numThreads = 1
  ort.env.logLevel = 'error'
  const given = oursOf({ inputs })
  const names = Object.keys(inputs)
  const program = new Function('ours', `return (${names.join(', ')}) => ours({ ${names.join(', ')} })`)(ours)
  const exported = toOnnx(fx.symbolicTrace(program), { inputs: Object.values(given) })
  const session = await ort.InferenceSession.create(exported.model)
  const feeds = Object.fromEntries(
    exported.inputs.map(({ name }, i) => {
      const t = given[names[i]]
      const data = t.dtype === 'int64' ? BigInt64Array.from(t.toArray(), BigInt) : t.toTypedArray()
      return [name, new ort.Tensor(t.dtype, data, t.shape)]
    }),
  )
  return { run: () => session.run(feeds), read: (y) => y[exported.outputs[0].name].data }
}

export async function tfjs({ inputs, tfjs: call, prepareTfjs = (_, values) => values, fromTfjs = (_, y) => y }) {
  if (call === undefined) return null
  const tf = await load('@tensorflow/tfjs-core')
  const wasm = await load('@tensorflow/tfjs-backend-wasm')
  wasm.setWasmPaths(join(dirname(resolve('@tensorflow/tfjs-backend-wasm')), '/'))
  wasm.setThreadsCount?.(1)
  await tf.setBackend('wasm')
  const given = prepareTfjs(
    tf,
    mapValues(inputs, ({ data, shape }) => tf.tensor(data, shape, data instanceof Int32Array ? 'int32' : 'float32')),
  )
  let last = null
  const run = () => {
    last?.dispose()
    last = tf.tidy(() => call(tf, given))
    return last
  }
  return { run, read: (y) => fromTfjs(tf, y).dataSync() }
}

export async function jax({ inputs, jax: call }) {
  if (call === undefined) return null
  const library = await load('@jax-js/jax')
  await library.init('wasm')
  library.defaultDevice('wasm')
  const given = mapValues(inputs, ({ data, shape }) => library.numpy.array(data).reshape(shape))
  const names = Object.keys(inputs)
  const fast = library.jit((...values) => call(library, Object.fromEntries(names.map((name, i) => [name, values[i]]))))
  // dataSync computes and copies; there is no other way to wait without a turn of the event loop.
  const run = () => fast(...names.map((name) => given[name].ref)).dataSync()
  return { run, read: (y) => y }
}
