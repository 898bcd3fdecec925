// Weights that PyTorch saved, in both formats: the models that they belong to compute what PyTorch computes. And files that are damaged, or ask for more than weights.
import { readFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { describe, expect, it, test } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { loadSafetensors, loadTorchFile, readSafetensors, writeSafetensors } from 'tensorfx/interop'
import { fromStored } from '../pytorch/cases.ts'
import type { StoredTensor } from '../pytorch/cases.ts'
import { tenth } from '../helpers/rotation.ts'
import { models } from './torchModels.ts'
import { storedZip } from '../../scripts/fuzz/files/storedZip.mjs'

const path = (name: string): string => fileURLToPath(new URL(`../goldens/weights/${name}`, import.meta.url))

interface Golden {
  readonly inputs: readonly StoredTensor[]
  readonly outputs: readonly StoredTensor[] | null
  readonly state: Readonly<Record<string, readonly [string, readonly number[]]>>
  readonly values: Readonly<Record<string, StoredTensor>> | null
}

const golden = (name: string): Golden => JSON.parse(readFileSync(path(`${name}.json`), 'utf8')) as Golden
const formats = { safetensors: loadSafetensors, pt: loadTorchFile }
type Format = keyof typeof formats

describe.each<Format>(['safetensors', 'pt'])('weights in a .%s file', (format) => {
  const load = (name: string): Promise<Map<string, Tensor>> => formats[format](path(`${name}.${format}`))

  it('have the dtypes, shapes and values that PyTorch saved', async () => {
    const { state, values } = golden('dtypes')
    const tensors = await load('dtypes')
    expect(Object.fromEntries([...tensors].map(([name, t]) => [name, [t.dtype, t.shape]]))).toEqual(state)
    for (const [name, stored] of Object.entries(values ?? {})) {
      const t = tensors.get(name)
      if (t === undefined) throw new Error(`there is no ${name}`)
      const wanted = stored.dtype === 'bool' || t.isFloatingPoint() ? t.to(stored.dtype as 'float32') : t
      expect([...wanted.contiguous().toTypedArray()].map(Number), name).toEqual(
        stored.data
          .map((v) => (stored.dtype.startsWith('float32') ? Math.fround(Number(v)) : Number(v)))
          .map((v, i) => (t.dtype === 'float64' ? expect.closeTo(v, 8) : t.isFloatingPoint() ? expect.closeTo(v, 6) : Number(stored.data[i]))),
      )
    }
  })

  it.each(tenth(Object.keys(models), (name) => `${name}.${format}`))('%s computes what PyTorch computes, eager and compiled', async (name) => {
    const { inputs, outputs } = golden(name)
    const make = models[name]
    if (make === undefined) throw new Error('no model')
    const model = make()
    expect(model.loadStateDict(await load(name))).toEqual({ missingKeys: [], unexpectedKeys: [] })
    model.eval()
    const tensors = inputs.map(fromStored)
    for (const call of [model, compile(model)] as unknown as ((...given: Tensor[]) => Tensor | readonly Tensor[])[]) {
      const results = torch.noGrad(() => [call(...tensors)].flat()) as Tensor[]
      outputs?.forEach((want, k) => {
        const got = results[k]
        expect(got?.shape).toEqual(want.shape)
        const distance = got === undefined ? NaN : got.sub(fromStored(want)).abs().max().item()
        expect(distance, `output ${k}`).toBeLessThan(1e-5)
      })
    }
  })

  it.each(Object.keys(models))('the state dict of %s has the names that PyTorch gave it', (name) => {
    const model = models[name]?.()
    const { state } = golden(name)
    const own = [...(model?.stateDict({ names: 'pytorch' }) ?? [])].map(([key, t]) => [key, [t.dtype, t.shape]])
    expect(Object.fromEntries(own)).toEqual(state)
  })
})

describe('a file may be given', () => {
  const name = path('dtypes.safetensors')
  test.each([
    ['as bytes', () => readFileSync(name)],
    ['as an ArrayBuffer', () => new Uint8Array(readFileSync(name)).buffer],
    ['as a Blob', () => new Blob([new Uint8Array(readFileSync(name))])],
    ['by its path', () => name],
    ['by its URL', () => pathToFileURL(name)],
  ])('%s', async (_, source) => {
    expect((await loadSafetensors(source())).get('steps')?.item()).toBe(2 ** 53 - 1)
  })

  it('and nothing else', async () => {
    await expect(loadTorchFile(3 as unknown as string)).rejects.toThrow(/loadTorchFile: the file must be a path, a URL, a Blob.* got 3/)
    await expect(loadTorchFile('x', { keys: 'a' } as never)).rejects.toThrow(/unknown option 'keys'; did you mean 'key'/)
  })
})

/** A pickle in the archive of torch.save. */
const torchFile = (pickle: string, more: Readonly<Record<string, Uint8Array>> = {}): Uint8Array =>
  storedZip({ 'x/data.pkl': Uint8Array.from(pickle, (c) => c.charCodeAt(0)), ...more })

const text = (value: string): string => `X${String.fromCharCode(value.length, 0, 0, 0)}${value}`
const STORAGE = `(${text('storage')}ctorch\nFloatStorage\n${text('0')}${text('cpu')}K\x04tQ`
/** A tensor of shape [size] with a stride, from an offset, in a storage of four floats. */
const view = (offset: number, size: string, stride: string): string =>
  `ctorch._utils\n_rebuild_tensor_v2\n(${STORAGE}K${String.fromCharCode(offset)}(${size}t(${stride}t\x89}tR`
const FLOATS = { 'x/data/0': new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer) }
const dict = (value: string): string => `\x80\x02}${text('w')}${value}s.`

describe('a file of torch.save', () => {
  it('may hold views, which share their storage', async () => {
    const state = await loadTorchFile(torchFile(dict(view(1, 'K\x02', 'K\x02')), FLOATS))
    expect(state.get('w')?.toArray()).toEqual([2, 4])
  })

  it('may hold the state dict among other things', async () => {
    const file = torchFile(`\x80\x02}(${text('epoch')}K\x03${text('model')}}${text('w')}${view(0, 'K\x04', 'K\x01')}su.`, FLOATS)
    expect((await loadTorchFile(file, { key: 'model' })).get('w')?.toArray()).toEqual([1, 2, 3, 4])
    await expect(loadTorchFile(file)).rejects.toThrow(/a dict with the keys 'epoch', 'model'.*\{ key: 'model' \}/)
    await expect(loadTorchFile(file, { key: 'weights' })).rejects.toThrow(
      /there is no 'weights' in the file; it holds a dict with the keys 'epoch', 'model'/,
    )
  })

  test.each([
    ['os.system', `cos\nsystem\n(${text('echo')}tR.`],
    ['builtins.eval', `\x80\x04${text('builtins')}${text('eval')}\x93(${text('1')}tR.`],
    ['torch.load', `ctorch\nload\n(tR.`],
    ['collections.OrderedDict.__class__', `ccollections\nOrderedDict.__class__\n.`],
    ['__builtin__.getattr', `c__builtin__\ngetattr\n.`],
  ])('is refused if it asks for %s, which is named', async (name, pickle) => {
    const error = await loadTorchFile(torchFile(pickle)).catch((e: unknown) => e)
    expect(error).toMatchObject({ message: expect.stringContaining(`asks for Python's '${name}'`) as string })
  })

  test.each([
    ['a view beyond its storage', dict(view(1, 'K\x04', 'K\x01')), /shape \[4\] does not fit into its storage of 4 elements/],
    ['a view of a huge size', dict(view(0, 'J\xff\xff\xff\x7f', 'K\x01')), /does not fit/],
    ['a negative size', dict(view(0, 'J\xff\xff\xff\xff', 'K\x01')), /does not fit/],
    ['a call of a storage', `ctorch\nFloatStorage\n(tR.`, /calls something that is not a function/],
    ['a value that was not stored', 'h\x07.', /takes value 7, which it has not stored/],
    ['an empty stack', '.', /takes a value that is not there/],
    ['a mark that is missing', 't.', /a mark is missing/],
    ['a value below a mark', 'K\x01(R.', /takes a value that is not there/],
    ['an unknown instruction', 'i', /unknown instruction 0x69 at 0/],
    ['an instance of a class', '(o.', /unknown instruction 0x6f/],
    ['a text that does not end', `X\xff\xff\xff\x7fab`, /ends at 7, in the middle of a value/],
    ['a huge integer', `\x8a\xff`, /an integer of 255 bytes/],
    ['no tensors', '}.', /expected a state dict.* holds a dict/],
    ['a number', 'K\x05.', /expected a state dict.* holds 5/],
    ['attributes of a list', ']}b.', /sets attributes of a value that is not a dict/],
    // Each list holds the one before twice: written out, the name of the function would have 2 ** 40 parts.
    ['a name that is a list', `]${'q\x00](h\x00h\x00e'.repeat(40)}${text('a')}\x93.`, /asks for a function without a name/],
    ['a module that is a list', `]${text('a')}\x93.`, /asks for a function without a name/],
    ['a storage of two types', `${STORAGE}0${STORAGE.replace('Float', 'Int')}.`, /storage '0' has two types, float32 and int32/],
    ['more than 64 dimensions', dict(view(0, 'K\x01'.repeat(65), 'K\x01'.repeat(65))), /does not fit/],
    ['a million dicts', `${'}'.repeat(1e6)}.`, /makes more values than a file of its size can need/],
    ['a million lists', `${']'.repeat(1e6)}.`, /makes more values than a file of its size can need/],
    ['a value that is stored two million times', `]${'\x94'.repeat(2e6)}.`, /makes more values than a file of its size can need/],
  ])('is refused with %s', async (_, pickle, message) => {
    await expect(loadTorchFile(torchFile(pickle, FLOATS))).rejects.toThrow(message)
  })

  it('is refused if a storage is missing or has another size', async () => {
    await expect(loadTorchFile(torchFile(dict(view(0, 'K\x04', 'K\x01'))))).rejects.toThrow(
      /storage '0' should have 4 elements of float32, but is missing/,
    )
    const short = { 'x/data/0': new Uint8Array(12) }
    await expect(loadTorchFile(torchFile(dict(view(0, 'K\x04', 'K\x01')), short))).rejects.toThrow(/but has 12 bytes/)
  })

  it('is refused if two entries have one name, or share their bytes', async () => {
    const data = new Uint8Array(16)
    await expect(
      loadTorchFile(
        storedZip([
          ['x/y', data],
          ['x/y', data],
        ]),
      ),
    ).rejects.toThrow(/two entries called 'x\/y'/)
    const file = storedZip({ 'x/a': data, 'x/b': data })
    // Both entries of the list point at the first one.
    const second = file.lastIndexOf(0x50, file.length - 23)
    new DataView(file.buffer).setUint32(second + 42, 0, true)
    await expect(loadTorchFile(file)).rejects.toThrow(/the entries 'x\/a' and 'x\/b' overlap/)
  })

  it('is refused if the archive is cut anywhere', async () => {
    const file = torchFile(dict(view(0, 'K\x04', 'K\x01')), FLOATS)
    for (let length = 0; length < file.length; length += 7)
      await expect(loadTorchFile(file.slice(0, length)), String(length)).rejects.toThrow(/loadTorchFile: /)
  })

  it('is refused in the format before PyTorch 1.6, and from a big-endian machine', async () => {
    await expect(loadTorchFile(Uint8Array.of(0x80, 2, 0x8a, 10, 0))).rejects.toThrow(/not a file of torch\.save since PyTorch 1\.6/)
    await expect(loadTorchFile(torchFile('}.', { 'x/byteorder': new TextEncoder().encode('big') }))).rejects.toThrow(/big-endian/)
    await expect(loadTorchFile(storedZip({ 'x/y': new Uint8Array() }))).rejects.toThrow(/no data\.pkl/)
  })
})

describe('names', () => {
  const model = (): InstanceType<typeof torch.nn.Sequential> => new torch.nn.Sequential(new torch.nn.BatchNorm1d(2))

  it("are written as PyTorch's, and read back", () => {
    const state = model().stateDict({ names: 'pytorch' })
    expect([...state.keys()]).toEqual(['0.weight', '0.bias', '0.running_mean', '0.running_var', '0.num_batches_tracked'])
    expect(model().loadStateDict(state)).toEqual({ missingKeys: [], unexpectedKeys: [] })
    const file = readSafetensors(writeSafetensors(state as Map<string, Tensor>))
    expect([...file.tensors.keys()]).toEqual([...state.keys()])
  })

  it('that do not match are listed, with the nearest one', () => {
    const state = new Map([...model().stateDict({ names: 'pytorch' })].map(([key, t]) => [key.replace('running_mean', 'running_men'), t]))
    expect(() => model().loadStateDict(state)).toThrow(/Missing key\(s\).*"0\.runningMean".*\n.*"0\.running_men" \(did you mean "0\.runningMean"\?\)/)
    expect(model().loadStateDict(state, { strict: false })).toEqual({ missingKeys: ['0.runningMean'], unexpectedKeys: ['0.running_men'] })
  })

  it('are only translated if that is clear', () => {
    class Both extends torch.nn.Module {
      ab = new torch.nn.Parameter(torch.zeros([1]))
      a_b = new torch.nn.Parameter(torch.zeros([1]))
      override forward(): Tensor {
        return this.ab
      }
    }
    const both = new Both()
    both.loadStateDict({ ab: torch.ones([1]), a_b: torch.ones([1]).mul(2) })
    expect([both.ab.item(), both.a_b.item()]).toEqual([1, 2])
    expect(() => both.loadStateDict({ aB: torch.ones([1]), a_b: torch.ones([1]) })).toThrow(/Missing key\(s\) in stateDict: "ab"/)
  })

  it('may be chosen from two spellings only', () => {
    expect(() => model().stateDict({ names: 'python' as 'pytorch' })).toThrow(/option 'names' must be 'own' or 'pytorch', got 'python'/)
  })
})
