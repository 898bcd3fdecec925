// A file as what a page shows: a graph, or a file of weights. It is told by its first bytes, not by its name. Files may come from anyone: nothing of them runs.
import { ArgumentError } from '../../../errors/index.ts'
import { GRAPH_KEY } from '../../../formats/safetensors.ts'
import type { PartReader } from '../../../formats/safetensors.ts'
import { isZip } from '../../../formats/zip.ts'
import type { GraphView } from '../view.ts'
import type { WeightsView } from '../weights.ts'
import { graphJsonView, savedModuleView } from './graphFile.ts'
import { readSafetensorsView, torchFileView } from './weightsFile.ts'

/** What a file turned out to be. */
export type Opened = { readonly graph: GraphView } | { readonly weights: WeightsView }

/** A file of the browser, or its bytes. */
export type FileContents = Blob | Uint8Array<ArrayBuffer>

/** Longer texts and archives are not read whole. */
const LONGEST_TEXT = 256 * 2 ** 20
const LONGEST_ARCHIVE = 2 ** 31

/** What is looked at to tell what a file is. */
const START = 16
const BRACE = 0x7b
const SPACES: ReadonlySet<number> = new Set([9, 10, 13, 32])

/** Whether these are the first bytes of a safetensors file: the length of a header, and the brace that it begins with. */
const isSafetensors = (start: Uint8Array): boolean => start.length > 8 && start[8] === BRACE && start[7] === 0 && start[6] === 0

/** Whether the first bytes are those of JSON: spaces, and a brace. */
const isJson = (start: Uint8Array): boolean => start.find((byte) => !SPACES.has(byte)) === BRACE

/**
 * Reads a file: the JSON of a graph (graphToJson), safetensors with or without a GraphModule (saveGraphModule), or what torch.save wrote. `name` is what the page calls it. Throws
 * ArgumentError for a file in another format, and for a damaged one.
 */
export async function openFile(name: string, file: FileContents): Promise<Opened> {
  const blob = file instanceof Uint8Array ? new Blob([file]) : file
  const bytesTo = async (end: number): Promise<Uint8Array> => new Uint8Array(await blob.slice(0, end).arrayBuffer())
  const start = await bytesTo(START)
  if (isZip(start)) {
    if (blob.size > LONGEST_ARCHIVE) throw tooLong(name, blob.size, LONGEST_ARCHIVE)
    return { weights: torchFileView(name, await bytesTo(blob.size)) }
  }
  if (isSafetensors(start)) {
    const weights = await readSafetensorsView(name, partsOf(name, blob))
    const [, graph] = weights.metadata.find(([key]) => key === GRAPH_KEY) ?? []
    return graph === undefined ? { weights } : { graph: savedModuleView(name, weights, graph) }
  }
  if (isJson(start)) {
    if (blob.size > LONGEST_TEXT) throw tooLong(name, blob.size, LONGEST_TEXT)
    return { graph: graphJsonView(name, await blob.text()) }
  }
  throw new ArgumentError(
    `open: '${name}' ${blob.size === 0 ? 'is empty' : 'is of no known format'}. Known are the JSON of a graph (graphToJson), .safetensors, and .pt, .pth or .bin of torch.save since PyTorch 1.6.`,
  )
}

const tooLong = (name: string, size: number, most: number): ArgumentError =>
  new ArgumentError(
    `open: '${name}' has ${size} bytes, more than the ${most} that can be read at once; save it as safetensors, which is read tensor by tensor.`,
  )

/** Reads a file part by part. */
function partsOf(name: string, blob: Blob): PartReader {
  let at = 0
  return {
    size: blob.size,
    async next(count) {
      if (at + count > blob.size) throw new ArgumentError(`open: '${name}' ends after ${blob.size} bytes, in the middle of its data; copy it again.`)
      at += count
      return new Uint8Array(await blob.slice(at - count, at).arrayBuffer())
    },
  }
}
