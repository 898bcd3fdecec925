// Saved graphs as commands read and write them: one row per format. A new one (ONNX, .pt2) is a row here.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { readComparison, writeComparison } from '../debug/compare/folder.ts'
import { fileStore } from '../debug/files/fileStore.ts'
import { ArgumentError, messageOf } from '../errors/index.ts'
import { GraphModule } from '../fx/index.ts'
import type { Graph } from '../fx/index.ts'
import { graphToJson } from '../fx/text/json.ts'
import { graphFromJson } from '../fx/text/readJson.ts'
import { loadGraphModule, readSafetensors, saveGraphModule, writeSafetensors } from '../interop/index.ts'
import type { Tensor } from '../tensor/index.ts'

/** A graph from a file. */
export interface Saved {
  readonly graph: Graph
  /** Holds the weights; null in a format that has none. */
  readonly root: GraphModule | null
  /** One per placeholder; null if the file has none. */
  readonly inputs: readonly unknown[] | null
}

/** A format of files. */
export interface Format {
  /** The end of its names; '' for a folder. */
  readonly extension: string
  readonly read: (path: string) => Saved
  readonly write: (path: string, saved: Saved) => void
}

const moduleOf = ({ graph, root }: Saved): GraphModule => new GraphModule(root ?? {}, graph.deepCopy())

const json: Format = {
  extension: '.json',
  read: (path) => ({ graph: graphFromJson(parsed(path)), root: null, inputs: null }),
  write: (path, { graph }) => writeFileSync(path, `${JSON.stringify(graphToJson(graph), null, 1)}\n`),
}

const safetensors: Format = {
  extension: '.safetensors',
  read: (path) => {
    const root = loadGraphModule(readFileSync(path))
    return { graph: root.graph, root, inputs: null }
  },
  write: (path, saved) => writeFileSync(path, saveGraphModule(moduleOf(saved))),
}

const folder: Format = {
  extension: '',
  read: (path) => {
    const { gm, inputs } = readComparison(fileStore(), path)
    return { graph: gm.graph, root: gm, inputs }
  },
  write: (path, saved) => {
    mkdirSync(path, { recursive: true })
    writeComparison(fileStore(), path, moduleOf(saved), saved.inputs ?? [])
  },
}

const FORMATS: readonly Format[] = [json, safetensors, folder]

/** The format of a saved graph, by the end of its name. Throws ArgumentError for another one, and if there is no such file. */
export function formatOf(path: string): Format {
  if (!existsSync(path)) throw new ArgumentError(`there is no file or folder '${path}'.`)
  const extension = statSync(path).isDirectory() ? '' : extname(path)
  const format = FORMATS.find((known) => known.extension === extension && (extension !== '' || statSync(path).isDirectory()))
  if (format !== undefined) return format
  throw new ArgumentError(
    `'${path}' is of no known format. Known are .json (graphToJson), .safetensors (saveGraphModule), and a folder with graph.safetensors and inputs.safetensors.`,
  )
}

/** The JSON in a file. Throws ArgumentError if it is none. */
export function parsed(path: string): Parameters<typeof graphFromJson>[0] {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new ArgumentError(`'${path}' is not JSON: ${messageOf(error)}`)
  }
}

/** The inputs in a safetensors file: `input_0`, `input_1`, … Throws ArgumentError if one is missing. */
export function readInputs(path: string): readonly Tensor[] {
  if (!existsSync(path)) throw new ArgumentError(`there is no file '${path}'.`)
  const { tensors } = readSafetensors(readFileSync(path))
  return Array.from({ length: tensors.size }, (_, i) => {
    const tensor = tensors.get(`input_${i}`)
    if (tensor === undefined) throw new ArgumentError(`'${path}' has ${tensors.size} tensors, but no 'input_${i}'.`)
    return tensor
  })
}

/** Writes inputs that {@link readInputs} reads. */
export function writeInputs(path: string, inputs: readonly Tensor[]): void {
  writeFileSync(path, writeSafetensors(inputs.map((tensor, i) => [`input_${i}`, tensor])))
}

/** The name of a copy of a saved graph in a folder. */
export const copyIn = (at: string, format: Format): string => join(at, `candidate${format.extension}`)
