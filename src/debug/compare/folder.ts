// The folder of a comparison: a graph and its inputs, as files that another program or the command line can read.
import { ArgumentError, UnsupportedError } from '../../errors/index.ts'
import type { GraphModule } from '../../fx/index.ts'
import { loadGraphModule, readSafetensors, saveGraphModule, writeSafetensors } from '../../interop/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { joinPath } from '../files/fileStore.ts'
import type { FileStore } from '../files/fileStore.ts'

export const GRAPH_FILE = 'graph.safetensors'
export const INPUTS_FILE = 'inputs.safetensors'

/** The name of an input in its file. */
const inputName = (i: number): string => `input_${i}`

/** Writes the files. Throws UnsupportedError for an input that is not a tensor. */
export function writeComparison(store: FileStore, directory: string, gm: GraphModule, inputs: readonly unknown[]): void {
  const tensors = new Map<string, Tensor>()
  for (const [i, input] of inputs.entries()) {
    if (!(input instanceof Tensor)) throw new UnsupportedError(`input ${i} is not a tensor, and the files of a comparison hold only tensors.`)
    tensors.set(inputName(i), input)
  }
  store.write(joinPath(directory, GRAPH_FILE), saveGraphModule(gm))
  store.write(joinPath(directory, INPUTS_FILE), writeSafetensors(tensors))
}

/** Reads them. Throws ArgumentError if one is missing. */
export function readComparison(store: FileStore, directory: string): { readonly gm: GraphModule; readonly inputs: readonly Tensor[] } {
  const read = (name: string): Uint8Array => {
    const bytes = store.read(joinPath(directory, name))
    if (bytes !== null) return bytes
    throw new ArgumentError(
      `there is no ${joinPath(directory, name)}. A comparison is a folder with ${GRAPH_FILE} (saveGraphModule) and ${INPUTS_FILE} (writeSafetensors: input_0, input_1, …).`,
    )
  }
  const gm = loadGraphModule(read(GRAPH_FILE))
  const { tensors } = readSafetensors(read(INPUTS_FILE))
  const inputs = Array.from({ length: tensors.size }, (_, i) => {
    const tensor = tensors.get(inputName(i))
    if (tensor !== undefined) return tensor
    throw new ArgumentError(`${joinPath(directory, INPUTS_FILE)} has ${tensors.size} tensors, but no '${inputName(i)}'.`)
  })
  return { gm, inputs }
}
