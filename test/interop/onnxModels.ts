// Running exported models, and comparing what they return.
import { Tensor } from 'tensorfx'
import { Graph, GraphModule } from 'tensorfx/fx'
import type { Argument } from 'tensorfx/fx'
import type { OnnxModel } from 'tensorfx/interop/onnx'
import type { OpDef } from 'tensorfx/ops'
import { treeLeaves } from 'tensorfx/pytree'
import * as ort from 'onnxruntime-web'
import { storedElements, tensorFromBytes } from '../../src/tensor/index.ts'
import { replace, tensorOf } from '../ops/valueCases.ts'

ort.env.wasm.numThreads = 1
ort.env.logLevel = 'error'

/** The tensors in a value. */
export const tensorsIn = (value: unknown): readonly Tensor[] => treeLeaves(value).filter((leaf): leaf is Tensor => leaf instanceof Tensor)

/** A graph with one call; the tensors among the arguments are its inputs. */
export function graphOf(op: OpDef, args: readonly unknown[]): { readonly gm: GraphModule; readonly inputs: readonly Tensor[] } {
  const graph = new Graph()
  const inputs: Tensor[] = []
  const given = args.map((arg) =>
    replace(arg, (plain) => {
      inputs.push(tensorOf(plain, 'float32', 'int64'))
      return graph.placeholder(`x${inputs.length}`)
    }),
  )
  graph.output(graph.callFunction(op.fn, given as Argument[]))
  return { gm: new GraphModule({}, graph), inputs }
}

/** The elements as they are stored are what onnxruntime takes, float16 included. */
const ortTensor = (t: Tensor): ort.Tensor => Reflect.construct(ort.Tensor, [t.dtype, storedElements(t), [...t.shape]]) as ort.Tensor

/** Runs a model in onnxruntime. */
export async function runModel(model: OnnxModel, inputs: readonly unknown[]): Promise<readonly Tensor[]> {
  const session = await ort.InferenceSession.create(model.model)
  try {
    const given = tensorsIn(inputs)
    const feeds = Object.fromEntries(
      model.inputs.flatMap(({ name }, i) => {
        const tensor = given[i]
        return tensor !== undefined && session.inputNames.includes(name) ? [[name, ortTensor(tensor)]] : []
      }),
    )
    const results = await session.run(feeds)
    return model.outputs.map(({ name, dtype }) => {
      const result = results[name] as ort.Tensor
      const { buffer, byteOffset, byteLength } = result.data as Float32Array
      return tensorFromBytes(new Uint8Array(buffer, byteOffset, byteLength), result.dims, dtype)
    })
  } finally {
    await session.release()
  }
}

/** Which tensors differ by more than the tolerance, absolute and relative. */
export function sameTensors(want: readonly Tensor[], got: readonly Tensor[], tolerance: number): { readonly differences: readonly string[] } {
  const differences: string[] = []
  if (want.length !== got.length) differences.push(`${want.length} tensors, got ${got.length}`)
  want.forEach((tensor, i) => {
    const other = got[i]
    if (other === undefined) return
    if (tensor.shape.join() !== other.shape.join()) differences.push(`result ${i}: shape [${tensor.shape.join()}], got [${other.shape.join()}]`)
    if (tensor.dtype !== other.dtype) differences.push(`result ${i}: ${tensor.dtype}, got ${other.dtype}`)
    const [a, b] = [tensor, other].map((t) => Array.from(t.contiguous().toTypedArray(), Number)) as [number[], number[]]
    const at = a.findIndex((v, k) => !Object.is(v, b[k]) && v !== b[k] && !(Math.abs(v - (b[k] ?? NaN)) <= tolerance * (1 + Math.abs(v))))
    if (at >= 0) differences.push(`result ${i}, element ${at}: ${a[at]}, got ${b[at]}`)
  })
  return { differences }
}
