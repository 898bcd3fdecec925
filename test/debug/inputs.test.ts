// The inputs of a repro on disk, and what is written around them: storages by content, the record of a run, the names of folders.
import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Tensor, nn, torch } from 'tensorfx'
import { fakeLike } from 'tensorfx/dispatch'
import { InputReader, InputWriter, MemoryFileStore, fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import type { FileStore } from 'tensorfx/debug'
import { Graph, GraphModule } from 'tensorfx/fx'
import { treeMap } from 'tensorfx/pytree'
import { dumpCheckpoint } from '../../src/debug/script/checkpoint.ts'
import { joinPath, workingDirectory } from '../../src/debug/files/fileStore.ts'
import { log, warnOnce } from '../../src/debug/common/log.ts'
import { readRecord, writeRecord } from '../../src/debug/minify/record.ts'
import { writeRepro } from '../../src/debug/script/reproScript.ts'
import type { DType } from '../../src/kernels/index.ts'
import { tensorFromBytes } from '../../src/tensor/index.ts'
import { fromPlain, toPlain } from '../../src/debug/files/plainValues.ts'
import { listen, textOf } from './inProcess.ts'

let said: [string, string][] = []
let store = new MemoryFileStore()
const nodeStore = fileStore()
beforeEach(() => {
  said = listen()
  store = new MemoryFileStore()
})
afterEach(() => {
  setLogSink(null)
  setFileStore(nodeStore)
})

const sha1 = (bytes: Uint8Array): string => createHash('sha1').update(bytes).digest('hex')
const bytesOf = (x: Tensor): Uint8Array => {
  const plain = toPlain(x, 'x')
  if (plain.kind !== 'tensor') throw new Error('not a tensor')
  return plain.bytes
}

/** What a reader makes of the lines. */
function readBack(writer: InputWriter, from: MemoryFileStore | null = store): InputReader {
  const reader = new InputReader(from, from === null ? null : 'dir')
  // The lines are code of a repro script.
  // eslint-disable-next-line no-new-func
  new Function('reader', writer.lines().join('\n'))(reader)
  return reader
}
const bitsOf = (x: unknown): unknown => (x instanceof Tensor ? [x.dtype, x.shape, x.strides, x.requiresGrad, x.isParameter, [...bytesOf(x)]] : x)
/** The value with the bits of tensors in their place. */
const comparable = (value: unknown): unknown => treeMap(value, bitsOf)
/** A tensor with these bits. */
const ofBits = (dtype: DType, words: readonly number[]): Tensor => {
  const bytes = new Uint8Array(dtype === 'float64' || dtype === 'int64' ? new Float64Array(words).buffer : new Uint32Array(words).buffer)
  return tensorFromBytes(bytes, [bytes.length / torch.zeros([1], { dtype }).elementSize()], dtype)
}

describe('an InputWriter', () => {
  it('writes few elements as numbers, repeated ones once, and others as base64', () => {
    const writer = new InputWriter(store, 'dir')
    const x = torch.tensor([1, -2.5, 3, 4, 5, 0.1]).reshape([2, 3])
    writer.add('x', x)
    writer.add('copy', x.clone())
    writer.add('k', 2.5)
    writer.add('nan', NaN)
    writer.add('a\nb', torch.full([4, 5], -0))
    writer.add('long', torch.arange(17, { dtype: 'int8' }))
    writer.add('flags', torch.tensor([true, false]))
    writer.add('none', torch.zeros([0, 3]))
    expect(writer.lines()).toEqual([
      'const buf0 = reader.values([1, -2.5, 3, 4, 5, 0.1])',
      'reader.tensor(buf0, [2, 3]) // x',
      // Equal data is not the same memory.
      'const buf1 = reader.values([1, -2.5, 3, 4, 5, 0.1])',
      'reader.tensor(buf1, [2, 3]) // copy',
      'reader.number(2.5) // k',
      'reader.number(NaN) // nan',
      'const buf2 = reader.fill(20, -0)',
      'reader.tensor(buf2, [4, 5]) // a b',
      "const buf3 = reader.bytes('AAECAwQFBgcICQoLDA0ODxA=')",
      "reader.tensor(buf3, [17], { dtype: 'int8' }) // long",
      "const buf4 = reader.values([true, false], 'bool')",
      "reader.tensor(buf4, [2], { dtype: 'bool' }) // flags",
      'const buf5 = reader.values([])',
      'reader.tensor(buf5, [0, 3]) // none',
    ])
    expect([...store.files.keys()]).toEqual([])
    expect(readBack(writer).args.map(bitsOf)).toEqual(
      [x, x, 2.5, NaN, torch.full([4, 5], -0), torch.arange(17, { dtype: 'int8' }), torch.tensor([true, false]), torch.zeros([0, 3])].map(bitsOf),
    )
  })

  it('writes what has no room in the script into a file, once, under the SHA-1 of its bytes', () => {
    const x = torch.linspace(0, 1, 100)
    const path = `dir/storages/${sha1(bytesOf(x))}`
    const writer = new InputWriter(store, 'dir', { inlineBytes: 4 + 400 })
    for (const value of [torch.tensor([7]), x, x.clone(), torch.tensor([8])]) writer.add('x', value)
    expect(writer.lines().filter((line) => line.startsWith('const'))).toEqual([
      'const buf0 = reader.values([7])',
      expect.stringMatching(/^const buf1 = reader\.bytes\('[^]*'\)$/),
      `const buf2 = reader.storage('${sha1(bytesOf(x))}', 400)`,
      `const buf3 = reader.storage('${sha1(bytesOf(torch.tensor([8])))}', 4)`,
    ])
    expect(writer.paths()[0]).toBe(path)
    expect([...store.files]).toHaveLength(2)
    expect(store.files.get(path)).toEqual(bytesOf(x))
    expect(new InputWriter(null, null).lines()).toEqual([])
    const alone = new InputWriter(null, null)
    alone.add('x', torch.linspace(0, 1, 5000))
    expect(alone.lines()[0]).toMatch(/^const buf0 = reader\.bytes\('/)
    expect(readBack(alone, null).args.map(bitsOf)).toEqual([bitsOf(torch.linspace(0, 1, 5000))])
  })

  it('says dtype, layout, gradients and parameters where they are not the usual ones', () => {
    const lineOf = (x: Tensor): string | undefined => {
      const writer = new InputWriter(store, 'dir')
      writer.add('x', x)
      return writer.lines().at(-1)
    }
    const parameter = new nn.Parameter(torch.ones([1]))
    expect(lineOf(torch.ones([2, 3]).t())).toBe('reader.tensor(buf0, [3, 2], { strides: [1, 3] }) // x')
    expect(lineOf(torch.ones([3, 2], { dtype: 'float64', requiresGrad: true }).t())).toBe(
      "reader.tensor(buf0, [2, 3], { strides: [1, 2], dtype: 'float64', requiresGrad: true }) // x",
    )
    expect(lineOf(parameter)).toBe('reader.tensor(buf0, [1], { requiresGrad: true, parameter: true }) // x')
    // Only the elements that a view reaches are written.
    expect(lineOf(torch.arange(1000).narrow(0, 500, 2))).toBe('reader.tensor(buf0, [2]) // x')
    expect(lineOf(torch.ones([1]).expand([3, 2]))).toBe('reader.tensor(buf0, [3, 2], { strides: [0, 0] }) // x')
  })

  it('keeps aliases: views share memory, and a tensor that comes twice is one', () => {
    const base = torch.arange(20)
    const row = base.narrow(0, 4, 3)
    const writer = new InputWriter(store, 'dir')
    const nested = { list: [row, base.narrow(0, 5, 4)] }
    for (const value of [row, row, nested]) writer.add('x', value)
    expect(writer.lines()).toEqual([
      'const buf0 = reader.values([4, 5, 6, 7, 8])',
      'const t0 = reader.tensor(buf0, [3]) // x',
      'reader.value(t0) // x',
      'reader.value({ list: [t0, reader.load(buf0, [4], { offset: 1 })] }) // x',
    ])
    const [first, again, { list }] = readBack(writer).args as [Tensor, Tensor, { list: Tensor[] }]
    expect([again === first, list[0] === first, list[1]?.storage === first.storage]).toEqual([true, true, true])
    first.fill_(9)
    expect(list[1]?.toArray()).toEqual([9, 9, 7, 8])
    // A graph that names positions in the storage gets it whole.
    const whole = new InputWriter(store, 'dir', { wholeStorages: true })
    whole.add('row', row)
    expect(whole.lines().at(-1)).toBe('reader.tensor(buf0, [3], { offset: 4 }) // row')
    expect(readBack(whole).args.map(bitsOf)).toEqual([bitsOf(row)])
  })

  it('holds values of every kind that a graph takes', () => {
    const x = torch.ones([1])
    const values = [-0, NaN, Infinity, -Infinity, 12n ** 30n, true, "it's", null, undefined, [1, ['a', { b: x, __proto__: null, 'c-d': -0 }]], {}]
    const more = [new Map([['k', [x, null]]]), new Set([1, 'two'])]
    const writer = new InputWriter(store, 'dir')
    for (const value of [...values, ...more]) writer.add('v', value)
    expect(comparable(readBack(writer).args)).toEqual(comparable([...values, ...more]))
    expect(Object.is(readBack(writer).args[0], -0)).toBe(true)
    for (const value of [() => 1, Symbol('s'), new Date(0), [new Date(0)], { a: { b: /x/ } }])
      expect(() => new InputWriter(store, 'dir').add('x', value)).toThrow(/^input 'x' cannot be written into a repro \(got /)
    const circle: unknown[] = []
    circle.push(circle)
    expect(() => new InputWriter(store, 'dir').add('x', circle)).toThrow('nested more than 500 deep')
    expect(() => new InputWriter(null, null).add('x', fakeLike(x))).not.toThrow()
  })

  it('keeps every bit of every dtype', () => {
    const payload = ofBits('float32', [0x7fc00001, 0xffc00000, 0x7f800001, 0x80000000])
    const tensors = [
      payload,
      ofBits('float32', [0x7fc00000, 0x00000001, 0x3dcccccd, 0x7f7fffff]),
      ofBits('float64', [0.1, -0, 5e-324, 1.7976931348623157e308, NaN]),
      ofBits('float16', [0x7e007c00, 0x80003c00, 0x00017bff, 0x7e01fc00]),
      ofBits('bfloat16', [0x7fc07f80, 0x80003f80, 0x00017f7f, 0x7fc1ff80]),
      torch.tensor([2n ** 63n - 1n, -(2n ** 63n), 0n, 2n ** 53n], { dtype: 'int64' }),
      ofBits('bool', [0x00010001, 0x02000001]),
      torch.tensor([255, 0], { dtype: 'uint8' }),
    ]
    for (const tensor of tensors)
      for (const repeat of [1, 30]) {
        const value = torch.cat(Array.from({ length: repeat }, () => tensor))
        const bits = repeat === 1 ? tensor : value
        const writer = new InputWriter(null, null)
        writer.add('x', bits)
        expect(readBack(writer, null).args.map(bitsOf), tensor.dtype).toEqual([bitsOf(bits)])
      }
    const readable = new InputWriter(null, null)
    readable.add('x', tensors[1])
    readable.add('i', tensors[5])
    expect(readable.lines().filter((line) => line.startsWith('const'))).toEqual([
      'const buf0 = reader.values([NaN, 1e-45, 0.1, 3.4028235e+38])',
      "const buf1 = reader.values([9223372036854775807n, -9223372036854775808n, 0, 9007199254740992n], 'int64')",
    ])
  })

  it('leaves a storage that is there, replaces one of another length, and takes back only what it has made', () => {
    const x = torch.tensor([1, 2])
    const y = torch.tensor([3, 4])
    const path = (t: Tensor): string => `dir/storages/${sha1(bytesOf(t))}`
    store.write(path(x), new Uint8Array(3))
    const none = { inlineBytes: 0 }
    const writer = new InputWriter(store, 'dir', none)
    writer.add('x', x)
    writer.add('y', y)
    writer.lines()
    expect([...store.files.keys()]).toEqual([path(x), path(y)])
    expect(store.files.get(path(x))).toEqual(bytesOf(x))
    writer.takeBack()
    expect([...store.files.keys()]).toEqual([path(x)])
    let writes = 0
    const counting: FileStore = { read: (file) => store.read(file), write: () => void writes++ }
    const second = new InputWriter(counting, 'dir', none)
    second.add('x', x)
    second.lines()
    expect(writes).toBe(0)
    // A store that cannot remove keeps them.
    const other = new InputWriter(counting, 'dir', none)
    other.add('y', y)
    other.lines()
    other.takeBack()
    expect(writes).toBe(1)
  })
})

describe('an InputReader', () => {
  const hash = sha1(new Uint8Array(8))

  it('never makes numbers up: a missing file is an error that says where it was looked for', () => {
    const reader = new InputReader(store, 'dir')
    expect(() => reader.storage(hash, 8)).toThrow(`the script needs the storage ${hash} (8 bytes), but there is no file dir/storages/${hash}.`)
    for (const nowhere of [new InputReader(null, 'dir'), new InputReader(store, null)])
      expect(() => nowhere.storage(hash, 8)).toThrow(`the script needs the storage ${hash} (8 bytes), but it was told of no folder.`)
    expect(() => reader.storage('../../etc/passwd', 8)).toThrow("named by the SHA-1 of its bytes, 40 hexadecimal digits; got '../../etc/passwd'")
  })

  it('refuses damaged files', () => {
    const reader = new InputReader(store, 'dir')
    store.write(`dir/storages/${hash}`, new Uint8Array(7))
    expect(() => reader.storage(hash, 8)).toThrow(`the storage dir/storages/${hash} has 7 bytes, but the script expects 8; the file is damaged.`)
    store.write(`dir/storages/${hash}`, new Uint8Array(8).fill(1))
    expect(() => reader.storage(hash, 8)).toThrow(`the storage dir/storages/${hash} does not hold the bytes that its name stands for`)
    store.write(`dir/storages/${hash}`, new Uint8Array(8))
    expect(reader.storage(hash, 8).bytes).toEqual(new Uint8Array(8))
    expect(() => reader.bytes('a b!')).toThrow('reader.bytes: the text is not base64; the script is damaged.')
  })

  it('gives random numbers where they were asked for, and knows of it', () => {
    const reader = new InputReader(store, 'dir', { random: true })
    const inline = reader.tensor(reader.values([1, 2]), [2])
    expect([inline.toArray(), reader.isRandom]).toEqual([[1, 2], false])
    const value = reader.tensor(reader.storage(hash, 400), [100])
    expect([value.shape, reader.isRandom]).toEqual([[100], true])
    expect(Number(value.std().item())).toBeGreaterThan(0.5)
    expect(reader.tensor(reader.storage(hash, 16), [2], { dtype: 'int64' }).toArray()).toEqual([0, 0])
    expect(reader.tensor(reader.storage(hash, 4), [2, 3], { strides: [0, 0] }).shape).toEqual([2, 3])
  })

  it('loads a constant of a module without making it an argument', () => {
    const reader = new InputReader(store, null)
    const value = reader.load({ bytes: new Uint8Array(new Float32Array([1, 2]).buffer), nbytes: 8 }, [2])
    expect([value.toArray(), value.requiresGrad, reader.args]).toEqual([[1, 2], false, []])
  })

  it('refuses layouts that cannot be', () => {
    const reader = new InputReader(store, 'dir')
    const storage = { bytes: new Uint8Array(8), nbytes: 8 }
    expect(() => reader.tensor(storage, [2], { dtype: 'float128' as never })).toThrow("reader.tensor: unknown dtype 'float128'.")
    expect(() => reader.tensor(storage, [2], { strides: [1, 1] })).toThrow('reader.tensor: a shape of 1 sizes needs as many strides, got 2.')
    expect(() => reader.tensor(storage, [-1])).toThrow(/^reader\.tensor: shape.*-1/)
    expect(() => reader.tensor(storage, [2 ** 30, 2 ** 30])).toThrow('is too large.')
    expect(() => reader.tensor(storage, [2], { stride: [1] } as never)).toThrow(/InputReader\.tensor.*stride/)
    expect(() => reader.tensor(storage, [2], { offset: 1 })).toThrow('a float32 tensor of shape [2] at 1 needs 12 bytes, but its storage has 8.')
    expect(() => reader.tensor(storage, [1], { offset: -1 })).toThrow(/offset/)
    expect(() => reader.tensor(storage, [1], { dtype: 'int32', requiresGrad: true })).toThrow('a tensor of int32 cannot require gradients.')
    expect(() => reader.values(['1' as never])).toThrow(/elements/)
    expect(() => reader.fill(-1, 0)).toThrow(/count/)
    expect(reader.tensor(storage, [0, 5], { offset: 100 }).numel).toBe(0)
  })
})

describe('values as plain data', () => {
  it('come back as they were', () => {
    for (const value of [
      torch
        .tensor(
          [
            [1, 2],
            [3, 4],
          ],
          { requiresGrad: true },
        )
        .t(),
      torch.tensor([1], { dtype: 'int64' }),
    ]) {
      const back = fromPlain(toPlain(value, 'x')) as Tensor
      expect([back.toArray(), back.dtype, back.strides, back.requiresGrad]).toEqual([value.toArray(), value.dtype, value.strides, value.requiresGrad])
    }
    const nested = [3, 'a', null, undefined, true, 5n, { b: [torch.ones([1])], ['__proto__']: 1 }, new Map([['m', new Set([1])]])]
    expect(comparable(fromPlain(toPlain(nested, 'k')))).toEqual(comparable(nested))
    expect((fromPlain(toPlain(new nn.Parameter(torch.ones([1])), 'p')) as Tensor).isParameter).toBe(true)
    expect(() => toPlain([Symbol('s')], 'x')).toThrow("input 'x' cannot be written into a repro")
  })

  it('are checked', () => {
    const plain = { kind: 'tensor', shape: [1], strides: [1], dtype: 'float32', requiresGrad: false, bytes: new Uint8Array(4) } as const
    expect(() => fromPlain({ ...plain, dtype: 'f32' as never })).toThrow("fromPlain: unknown dtype 'f32'.")
    expect(() => fromPlain({ ...plain, shape: [-1] })).toThrow(/^fromPlain: shape.*-1/)
    expect(() => fromPlain({ ...plain, strides: [0.5] })).toThrow(/^fromPlain: strides.*0\.5/)
    expect(() => fromPlain({ ...plain, strides: [] })).toThrow('fromPlain: a shape of 1 sizes needs as many strides, got 0.')
  })
})

describe('the record of a run', () => {
  it('is read as it was written', () => {
    writeRecord(store, 'r.json', 'compile', 'started')
    expect(readRecord(store, 'r.json')).toEqual({ phase: 'compile', state: 'started', pid: process.pid })
    writeRecord(store, 'r.json', 'run', 'ended')
    expect(readRecord(store, 'r.json')).toEqual({ phase: 'run', state: 'ended', pid: process.pid })
  })

  it.each([
    '',
    '{',
    '3',
    'null',
    '{}',
    '{"phase":"run","state":"ended"}',
    '{"phase":"walk","state":"ended","pid":1}',
    '{"phase":"run","state":"lost","pid":1}',
  ])('that says %j is none', (text) => {
    store.write('r.json', text)
    expect(readRecord(store, 'r.json')).toBeNull()
  })

  it('that is not there is none', () => {
    expect(readRecord(store, 'r.json')).toBeNull()
  })
})

describe('paths', () => {
  it('begin where the program runs, and nowhere where there are no folders', () => {
    expect(workingDirectory()).toBe(process.cwd())
    for (const host of [{}, undefined]) {
      vi.stubGlobal('process', host)
      expect(workingDirectory()).toBe('')
    }
    vi.unstubAllGlobals()
  })

  it('have single slashes', () => {
    expect(joinPath('/a/', '//b', 'c')).toBe('/a/b/c')
    expect(joinPath('https://a.page/saved/', 'storages')).toBe('https://a.page/saved/storages')
  })

  it('of a run are its own, below the root', async () => {
    vi.resetModules()
    const { debugDirectory } = await import('../../src/debug/files/fileStore.ts')
    expect(debugDirectory('/somewhere')).toMatch(new RegExp(`^/somewhere/run_\\d{4}(_\\d\\d){5}_\\d{3}-pid_${process.pid}$`))
    expect(debugDirectory('/somewhere')).toBe(debugDirectory('/somewhere'))
    expect(debugDirectory(null)).toBe(debugDirectory(`${process.cwd()}/tensorfx_compile_debug`))
    vi.resetModules()
    const inBrowser = await import('../../src/debug/files/fileStore.ts')
    vi.stubGlobal('process', undefined)
    const folder = inBrowser.debugDirectory('/somewhere')
    vi.unstubAllGlobals()
    expect(folder).toMatch(/^\/somewhere\/run_\d{4}(_\d\d){5}_\d{3}-pid_0$/)
  })
})

it('a warning that is repeated is shown the first time', () => {
  for (const message of ['first of two', 'second of two', 'first of two']) warnOnce(message)
  expect(said).toEqual([
    ['warning', 'first of two'],
    ['warning', 'second of two'],
  ])
})

it('the log writes to standard error, warnings and errors with their level, until another sink is set', () => {
  const written: unknown[] = []
  const spy = vi.spyOn(console, 'error').mockImplementation((text) => void written.push(text))
  const mine = setLogSink(null)
  log.info('progress')
  log.warning('careful')
  log.error('wrong')
  expect(written).toEqual(['progress', '[tensorfx warning] careful', '[tensorfx error] wrong'])
  setLogSink(mine)
  log.info('heard')
  expect([written.length, said.at(-1)]).toEqual([3, ['info', 'heard']])
  spy.mockRestore()
})

it('files in memory are copies of what is written', () => {
  const bytes = Uint8Array.of(1, 2)
  store.write('a', bytes)
  bytes[0] = 9
  store.write('b', 'text')
  expect([store.read('a'), textOf(store, 'b'), store.read('c')]).toEqual([Uint8Array.of(1, 2), 'text', null])
  store.remove('a')
  expect(store.read('a')).toBeNull()
})

describe('a checkpoint', () => {
  const graph = new Graph()
  graph.output([graph.callFunction(torch.relu, [graph.placeholder('x')])])
  const gm = new GraphModule({}, graph)
  const spec = { backend: 'eager', accuracy: 'none', checkStr: null, signature: null, onlyFwd: true } as const
  const options = { after: 'aot', spec, imports: [] } as const
  const copy = `${process.cwd()}/repro.mjs`

  it('is a script in the folder of the run, and a copy of it in the working directory', () => {
    setFileStore(store)
    const lines: string[] = []
    expect(dumpCheckpoint('/run', gm, [torch.ones([1])], options, (line) => void lines.push(line))).toBe(copy)
    const script = '/run/minifier/checkpoints/3.mjs'
    expect(lines).toEqual([`Writing checkpoint with 3 nodes to ${script}`, `Copying repro file for convenience to ${copy}`])
    expect(textOf(store, script)).toContain("command: 'run'")
    // The same program; only the paths differ.
    const lineOf = (path: string, what: string): string | undefined =>
      textOf(store, path)
        .split('\n')
        .find((line) => line.includes(what))
    expect([lineOf(copy, 'reader.tensor'), lineOf(script, 'saveDir:')]).toEqual([
      lineOf(script, 'reader.tensor'),
      "  saveDir: new URL('./', import.meta.url),",
    ])
    expect(lineOf(copy, 'saveDir:')).toMatch(/new URL\('(\.\.\/)+run\/minifier\/checkpoints\/'/)
  })

  it('is the script alone where the copy cannot be written', () => {
    const readOnly: FileStore = {
      read: (path) => store.read(path),
      write: (path, content) => {
        if (path === copy) throw new Error('EACCES')
        store.write(path, content)
      },
    }
    setFileStore(readOnly)
    expect(dumpCheckpoint('/run', gm, [torch.ones([1])], options, () => {})).toBe('/run/minifier/checkpoints/3.mjs')
    expect(said).toEqual([['warning', `No write permissions for ${copy} (Error: EACCES)`]])
  })

  it('that cannot be written whole leaves nothing', () => {
    expect(() => writeRepro(store, '/a.mjs', '/dir', gm, [torch.ones([1]), Symbol('s')], { ...options, command: 'run' })).toThrow("input 'arg1'")
    expect([...store.files.keys()]).toEqual([])
  })
})
