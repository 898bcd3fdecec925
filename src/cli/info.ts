// `tensorfx info`: the tensors of a file of weights. Of a safetensors file only the header is read, so that its size does not matter.
import { existsSync } from 'node:fs'
import { extname } from 'node:path'
import { ArgumentError } from '../errors/index.ts'
import { installTensors } from '../install/tensors.ts'
import { loadTorchFile } from '../interop/index.ts'
import { withParts } from '../interop/fileSource.ts'
import { readHeader } from '../formats/safetensors.ts'
import { dtypeInfo } from '../kernels/index.ts'
import { sizeText } from '../protocol/sizeText.ts'
import { formatShape, numelOf } from '../tensor/index.ts'
import type { Line, Result } from './line.ts'
import { PLAIN, aligned } from './terminal.ts'
import type { Terminal } from './terminal.ts'
import { TORCH_FILES } from './torchFiles.ts'

/** A tensor in a file. */
interface StoredTensor {
  readonly name: string
  /** tensorfx's name of the dtype; for one that tensorfx lacks, the file's. */
  readonly dtype: string
  readonly shape: readonly number[]
  readonly elements: number
  readonly bytes: number
}

/** What a file holds. */
interface Weights {
  readonly tensors: readonly StoredTensor[]
  readonly metadata: Readonly<Record<string, string>>
}

async function safetensors(path: string): Promise<Weights> {
  const { entries, metadata } = await withParts('info', path, readHeader)
  const tensors = entries.map(({ name, dtype, storedAs, other, shape, from, to }) => ({
    name,
    dtype: other === null ? dtype : storedAs,
    shape,
    elements: numelOf(shape),
    bytes: to - from,
  }))
  return { tensors, metadata }
}

async function torchFile(path: string, key: string | undefined): Promise<Weights> {
  installTensors()
  const read = await loadTorchFile(path, key === undefined ? {} : { key })
  const tensors = [...read].map(([name, { dtype, shape, numel }]) => ({ name, dtype, shape, elements: numel, bytes: numel * dtypeInfo[dtype].size }))
  return { tensors, metadata: {} }
}

const npz = async (path: string): Promise<Weights> => ({ tensors: (await import('./npz.ts')).readNpz(path), metadata: {} })

async function read(path: string, key: string | undefined): Promise<Weights> {
  const extension = extname(path)
  if (!['.safetensors', '.npz', ...TORCH_FILES].includes(extension))
    throw new ArgumentError(`'${path}' is of no known format. Known are .safetensors, ${TORCH_FILES.join(', ')} (torch.save) and .npz (numpy.savez).`)
  if (!existsSync(path)) throw new ArgumentError(`there is no file '${path}'.`)
  if (TORCH_FILES.includes(extension)) return torchFile(path, key)
  if (key !== undefined) throw new ArgumentError(`--key is for files of torch.save; a ${extension} file holds tensors only.`)
  return extension === '.npz' ? npz(path) : safetensors(path)
}

/** How many tensors, elements and bytes there are. */
function total(tensors: readonly StoredTensor[]): { readonly tensors: number; readonly elements: number; readonly bytes: number } {
  const sum = (of: (tensor: StoredTensor) => number): number => tensors.reduce((all, tensor) => all + of(tensor), 0)
  return { tensors: tensors.length, elements: sum(({ elements }) => elements), bytes: sum(({ bytes }) => bytes) }
}

/** Runs `tensorfx info`. */
export async function describeWeights({ operands, options }: Line, terminal: Terminal = PLAIN): Promise<Result> {
  const [path, second] = operands
  if (path === undefined || second !== undefined) throw new ArgumentError(`expected one file of weights, got ${operands.length}.`)
  const { tensors, metadata } = await read(path, options.get('--key'))
  const dtypes = Object.fromEntries(
    [...new Set(tensors.map(({ dtype }) => dtype))].map((dtype) => [dtype, total(tensors.filter((t) => t.dtype === dtype))]),
  )
  const all = total(tensors)
  const rows = [
    ['tensor', 'dtype', 'shape', 'elements', 'size'],
    ...tensors.map(({ name, dtype, shape, elements, bytes }) => [name, dtype, formatShape(shape), String(elements), sizeText(bytes)]),
  ]
  const counts = (what: string, { tensors: number, elements, bytes }: typeof all): readonly string[] => [
    what,
    `${number} ${number === 1 ? 'tensor' : 'tensors'}`,
    `${elements} elements`,
    sizeText(bytes),
  ]
  const texts = Object.entries(metadata)
  const text = [
    ...aligned(rows, terminal),
    '',
    ...aligned([...Object.entries(dtypes).map(([dtype, of]) => counts(dtype, of)), counts('total', all)], terminal),
    ...(texts.length === 0
      ? []
      : [
          '',
          'metadata',
          ...aligned(
            texts.map(([key, value]) => [`  ${key}`, value.replaceAll(/\s+/g, ' ')]),
            terminal,
          ),
        ]),
  ].join('\n')
  return { text, code: 0, data: { file: path, tensors, dtypes, metadata, total: all } }
}
