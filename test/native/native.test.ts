// Kernels as machine code: the same bits, whatever becomes of the compiler, of the folder of libraries, or of the heap meanwhile.
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { compile, torch } from '../../src/index.ts'
import type { Tensor } from '../../src/index.ts'
import { explain, registerBackend } from '../../src/entries/compile.ts'
import type { CompileOptions } from '../../src/entries/compile.ts'
import { compareBackends } from '../../src/entries/debug.ts'
import { symbolicTrace } from '../../src/entries/fx.ts'
import { onEvent } from '../../src/events/index.ts'
import * as native from '../../src/entries/native.ts'
import { at, bufferParam, call, constant, forLoop, load, loopVar, store } from '../../src/kernels/ir/loopIr.ts'
import type { Running } from '../../src/kernels/run/compile.ts'
import type { Kernel } from '../../src/kernels/index.ts'
import { emitterOf } from '../../src/kernels/engine/machineCode.ts'
import { hasRelaxedSimd } from '../../src/kernels/index.ts'
import { heapView, tryAllocate } from '../../src/kernels/memory/heap.ts'
import { Workshop, findCompiler } from '../../src/native/compiler.ts'
import type { LibrarySource } from '../../src/native/compiler.ts'
import { NativeKernel } from '../../src/native/nativeKernel.ts'
import { hasCompiler } from '../kernels/c/runC.ts'

const work = mkdtempSync(join(tmpdir(), 'tensorfx-native-test-'))
// Folders for one process are made where temporary files are.
vi.stubEnv('TMPDIR', work)
afterAll(() => rmSync(work, { recursive: true }))
afterEach(() => vi.restoreAllMocks())

/** A command that a test writes. */
function script(name: string, ...lines: string[]): string {
  const file = join(work, name)
  writeFileSync(file, ['#!/bin/sh', ...lines, ''].join('\n'))
  chmodSync(file, 0o755)
  return file
}

/** The letter by which the system names what a process does, or `gone`. */
function stateOf(pid: number): string {
  try {
    return /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1] ?? 'gone'
  } catch {
    return 'gone'
  }
}

/** out[i] = a[i] + 1 over 1,000 elements. */
function addOne(): Kernel {
  const [out, a, i] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32'), loopVar('i', 1000)]
  return {
    name: 'add_one',
    params: [out, a],
    body: [forLoop(i, 'simd', [store(out, at([i, 1]), call('add', load(a, at([i, 1])), constant('float32', 1)))])],
  }
}

describe('init', () => {
  test('without a compiler says what to install, and that results stay the same', async () => {
    await expect(native.init({ compiler: join(work, 'nothing') })).rejects.toThrow(/no C compiler answers \(tried .*nothing\): install GCC or Clang/)
  })

  test.each([
    ['fails', 'exit 1'],
    ['prints something else', 'echo hello'],
    ['dies', 'kill -9 $$'],
  ])('refuses a compiler that %s when it is asked what it is', async (name, line) => {
    await expect(native.init({ compiler: script(`cc-${name.replaceAll(' ', '-')}`, line) })).rejects.toThrow('no C compiler answers')
  })

  test('names an option that is wrong', async () => {
    await expect(native.init({ compiler: '' })).rejects.toThrow("native.init: compiler must be a command, such as 'gcc', got ''")
    await expect(native.init({ cache: 3 as never })).rejects.toThrow('native.init: cache must be a folder or false, got 3')
    await expect(native.init({ check: 1 as never })).rejects.toThrow('native.init: check must be true or false, got 1')
    await expect(native.init(null as never)).rejects.toThrow('native.init: options must be an object, got null')
  })
})

describe('before init', () => {
  const x = (): Tensor => torch.ones([3])

  test('no machine code computes, and none can be asked for', () => {
    const { native: backend } = torch.backends
    expect(backend.enabled).toBe(false)
    expect(() => (backend.enabled = true)).toThrow(
      /backends.native.enabled is true: machine code is compiled by tensorfx\/native, .* await native.init\(\)/,
    )
    expect(() => (backend.enabled = 1 as never)).toThrow('backends.native.enabled must be true or false, got 1')
    expect(() => compile(x, { options: { emitter: 'c' } })).toThrow(/compile: options.emitter is 'c': machine code is compiled by tensorfx\/native/)
    expect(() => compile(x, { options: { emitter: 'llvm' as never } })).toThrow("options.emitter' must be 'c' or 'wasm', got 'llvm'")
    expect(() => compile((t: Tensor) => t.mul(2), { backend: 'inductor:c' })(x())).toThrow(/inductor:c: machine code is compiled by tensorfx\/native/)
    expect(emitterOf('c')).toBe('c')
    expect(emitterOf('')).toBeNull()
    expect(() => emitterOf('llvm')).toThrow("TENSORFX_EMITTER must be c or wasm, got 'llvm'.")
  })

  test('the names of backends say what computes', () => {
    const f = (t: Tensor): Tensor => t.mul(t).sum()
    const by = (backend: string): unknown => {
      const compiled = compile(f, { backend })
      compiled(torch.randn([1000]))
      return compiled.kernels().map(({ computedBy }) => computedBy?.())
    }
    expect(by('inductor:wasm')).toEqual([{ engine: 'wasm', threads: 1 }])
    if (hasRelaxedSimd()) expect(by('inductor:relaxed')).toEqual([{ engine: 'wasm-relaxed', threads: 1 }])
    expect(() => by('inductor:threads2')).toThrow(/inductor:threads2: .* TENSORFX_NUM_THREADS=2/)
    expect(() => registerBackend('inductor:mine', (gm) => gm.forward)).toThrow("there is already a backend 'inductor:mine'")
  })
})

describe('a kernel with two functions', () => {
  const running = (run: (...args: number[]) => void): Running => ({ run, computedBy: () => ({ engine: 'wasm', threads: 1 }) })

  test('computes both ways when it is checked, and names the kernel and the place of a difference', () => {
    const [out, a] = [tryAllocate(4000), tryAllocate(4000)]
    const wasm = (...args: number[]): void => heapView('float32').fill(2, (args[0] ?? 0) / 4, (args[0] ?? 0) / 4 + 1000) as unknown as void
    const wrong = (...args: number[]): void => {
      wasm(...args)
      heapView('float32')[(args[0] ?? 0) / 4 + 7] = 2.5
    }
    const kernel = new NativeKernel({ wide: addOne(), wasm: running(wasm), kernel: addOne() }, { checks: true, demand: null })
    kernel.native = running(wasm)
    kernel.call([out, a])
    kernel.native = running(wrong)
    expect(() => kernel.call([out, a])).toThrow(/the library of the kernel add_one computes other bits than WebAssembly: first in byte 30 of out/)
  })

  test('runs the faster one once both were timed, and neither for little work', () => {
    const ran: string[] = []
    const wait = (ms: number): void => {
      const end = performance.now() + ms
      while (performance.now() < end);
    }
    const looped = { ...addOne(), body: [forLoop(loopVar('j', 10), 'serial', addOne().body)] }
    const wasm = (): void => void (ran.push('wasm'), wait(1))
    const kernel = new NativeKernel({ wide: looped, wasm: running(wasm), kernel: looped }, { checks: false, demand: null })
    kernel.native = running(() => void ran.push('native'))
    expect(kernel.gain).toBeNull()
    for (let i = 0; i < 20; i++) kernel.call([1024, 8192])
    expect(ran.filter((name) => name === 'wasm')).toHaveLength(8)
    expect(ran.slice(16)).toEqual(Array.from({ length: 4 }, () => 'native'))
    expect(kernel.gain).toBeGreaterThan(1)
    // Both are timed again: the host may have made better code of WebAssembly meanwhile.
    ran.length = 0
    for (let i = 20; i < 84; i++) kernel.call([1024, 8192])
    expect(ran.filter((name) => name === 'wasm')).toHaveLength(8)
    expect(ran.slice(-4)).toEqual(['native', 'native', 'native', 'native'])
  })
})

describe.skipIf(!hasCompiler)(`with the compiler of this machine${hasCompiler ? '' : ': skipped, there is none'}`, () => {
  const sourceOf = (text: string): LibrarySource => ({ from: () => text, text: () => text })
  const source = sourceOf('int tfx_one(void) { return 1; }\n')
  const other = sourceOf('int tfx_two(void) { return 2; }\n')
  const wrong = sourceOf('int f( {')

  test('a library is compiled once, and again where the one that is kept is not whole or others may write to it', async () => {
    const folder = join(work, 'kept')
    const workshop = new Workshop(findCompiler(), folder)
    const first = await workshop.library(source)
    expect(first.isNew).toBe(true)
    expect((await workshop.library(source)).isNew).toBe(false)
    expect((await new Workshop(findCompiler(), folder).library(source)).isNew).toBe(false)
    expect((await workshop.library(other)).isNew).toBe(true)
    writeFileSync(first.file, 'garbage')
    expect((await workshop.library(source)).isNew).toBe(true)
    chmodSync(first.file, 0o777)
    expect((await workshop.library(source)).isNew).toBe(true)
    expect((await workshop.library(source)).isNew).toBe(false)
    // Another processor or version is another name.
    expect((await new Workshop({ ...findCompiler(), identity: 'another' }, folder).library(source)).isNew).toBe(true)
    expect(readdirSync(folder).every((name) => name.endsWith('.so') || name.endsWith('.so.sum'))).toBe(true)
  })

  test('two that compile the same at once both get a library', async () => {
    const folder = join(work, 'both')
    const made = await Promise.all([1, 2].map(async () => new Workshop(findCompiler(), folder).library(source)))
    expect(new Set(made.map(({ file }) => file)).size).toBe(1)
    expect((await new Workshop(findCompiler(), folder).library(source)).isNew).toBe(false)
  })

  test('where nothing can be kept, or others may write to the folder, one message says so and it works', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue()
    const folder = join(work, 'shared')
    const own = new Workshop(findCompiler(), folder)
    chmodSync(folder, 0o777)
    const elsewhere = await new Workshop(findCompiler(), folder).library(source)
    expect(elsewhere.isNew).toBe(true)
    expect(elsewhere.file.startsWith(folder)).toBe(false)
    expect((await new Workshop(findCompiler(), '/dev/null/folder').library(source)).isNew).toBe(true)
    expect(warn.mock.calls.map(([text]) => String(text))).toEqual([
      expect.stringContaining('others may write to'),
      expect.stringContaining('no compiled code can be kept in /dev/null/folder'),
    ])
    expect(own.compiler.version).toMatch(/\d/)
  })

  test('a folder that has become too large loses its oldest libraries, but not the newest', async () => {
    const folder = join(work, 'large')
    const workshop = new Workshop(findCompiler(), folder)
    const { file } = await workshop.library(source)
    // Sparse files, which take no room.
    for (const [name, hours] of [
      ['oldest', 3],
      ['older', 2],
      ['old', 1],
    ] as const) {
      const path = join(folder, `${name}.so`)
      for (const one of [path, `${path}.sum`]) writeFileSync(one, '')
      truncateSync(path, 200 * 2 ** 20)
      const time = Date.now() / 1000 - 3600 * hours
      utimesSync(path, time, time)
    }
    const next = await workshop.library(other)
    expect(readdirSync(folder).filter((name) => name.startsWith('old'))).toEqual(['old.so', 'old.so.sum', 'older.so', 'older.so.sum'])
    expect([file, next.file].every((one) => existsSync(one))).toBe(true)
  })

  test('where the disk is full, the error says so, and nothing is left behind', async () => {
    const folder = join(work, 'full')
    const workshop = new Workshop(findCompiler(), folder)
    const fs = process.getBuiltinModule('node:fs')
    const write = fs.writeFileSync.bind(fs)
    for (const ending of ['.c', '.sum']) {
      vi.spyOn(fs, 'writeFileSync').mockImplementation((path, ...rest) => {
        if (String(path).endsWith(ending)) throw new Error('ENOSPC: no space left on device, write')
        write(path, ...rest)
      })
      await expect(workshop.library(source)).rejects.toThrow('ENOSPC')
      expect(() => workshop.libraryNow(source)).toThrow('ENOSPC')
      expect(readdirSync(folder)).toEqual([])
      vi.restoreAllMocks()
    }
    expect((await workshop.library(source)).isNew).toBe(true)
  })

  test('what the compiler says when it fails is in the error', async () => {
    await expect(new Workshop(findCompiler(), join(work, 'fails')).library(wrong)).rejects.toThrow(/failed: .*error/s)
    expect(readdirSync(join(work, 'fails'))).toEqual([])
  })

  test.each([['in the background'], ['while the program waits']])('a compiler that hangs %s is ended, with what it started', async (how) => {
    const pidFile = join(work, `hangs ${how}`)
    const command = script('cc-hangs', 'case "$*" in *-dM*) exec cc "$@";; esac', 'sleep 60 &', `echo $! > '${pidFile}'`, 'wait')
    const workshop = new Workshop(findCompiler(command), join(work, 'hangs'), 300)
    const compiling = async (): Promise<unknown> => (how === 'in the background' ? workshop.library(source) : workshop.libraryNow(source))
    await expect(compiling()).rejects.toThrow(/cc-hangs did not end within 0.3 s|ETIMEDOUT/)
    expect(readdirSync(join(work, 'hangs'))).toEqual([])
    const pid = Number(readFileSync(pidFile, 'utf8'))
    expect(pid).toBeGreaterThan(0)
    await expect.poll(() => stateOf(pid)).toMatch(/^(?:gone|Z)$/)
  })

  test('a library is the same whether the program waits for it or not', async () => {
    const workshop = new Workshop(findCompiler(), join(work, 'waits'))
    const now = workshop.libraryNow(source)
    expect(now.isNew).toBe(true)
    expect(await workshop.library(source)).toEqual({ file: now.file, isNew: false })
    expect(() => workshop.libraryNow(wrong)).toThrow(/failed: .*error/s)
  })

  describe('programs', () => {
    const { functional: F } = torch.nn
    const shapes = [3, 64, 130]
    const program = (x: Tensor, w: Tensor): Tensor => F.softmax(F.gelu(x.mm(w)).add(x.sum(1, true)), -1).mul(x.mean())
    const bits = (tensors: readonly Tensor[]): readonly unknown[] =>
      tensors.map((tensor) => [...new Uint32Array(new Float32Array(tensor.toTypedArray() as Float32Array).buffer)])
    const inputs = (): [Tensor, Tensor][] => {
      torch.manualSeed(29)
      return shapes.map((n) => [torch.randn([n, 96]), torch.randn([96, 96])])
    }
    let plain: readonly unknown[]

    beforeAll(() => {
      plain = bits(inputs().map(([x, w]) => compile(program)(x, w)))
    })

    test('have the same bits before and after their libraries are there, with steps and sizes of their own, also once the heap has grown', async () => {
      await native.init({ cache: join(work, 'programs') })
      const f = compile(program)
      const run = (): readonly unknown[] => bits(inputs().map(([x, w]) => f(x, w)))
      expect(run()).toEqual(plain)
      await native.ready()
      for (let i = 0; i < 15; i++) expect(run()).toEqual(plain)
      const big = torch.ones([9_000_000])
      expect(run()).toEqual(plain)
      expect(big.sum().item()).toBe(9_000_000)
      await native.ready()
      const { compiler, compiled, pending, kernels } = native.stats()
      expect([compiler?.version, pending]).toEqual([findCompiler().version, 0])
      expect(compiled).toBeGreaterThan(0)
      expect(kernels.some(({ why, gain }) => why === null && gain !== null)).toBe(true)
      torch.backends.native.enabled = false
      expect(run()).toEqual(plain)
      expect(bits([compile((t: Tensor) => t.mul(3))(torch.ones([9]))])).toEqual(bits([torch.ones([9]).mul(3)]))
      await native.ready()
      expect(native.stats().kernels).toHaveLength(kernels.length)
      torch.backends.native.enabled = true
      expect(run()).toEqual(plain)
    })

    test('with the emitter c are machine code from the first call on, and with wasm never, with the same bits', async () => {
      const run = (options: CompileOptions): readonly unknown[] => {
        const f = compile(program, options)
        const results = bits(inputs().map(([x, w]) => f(x, w)))
        const engines = f.kernels().map(({ computedBy }) => computedBy?.().engine)
        return [results, [...new Set(engines)]]
      }
      const wasm = torch.backends.wasm.engine
      expect(run({ options: { emitter: 'c' } })).toEqual([plain, ['c']])
      expect(run({ backend: 'inductor:c' })).toEqual([plain, ['c']])
      expect(run({ options: { emitter: 'wasm' } })).toEqual([plain, [wasm]])
      torch.backends.native.enabled = false
      expect(run({ options: { emitter: 'c' } })).toEqual([plain, [wasm]])
      torch.backends.native.enabled = true
      const { pending, kernels } = native.stats()
      expect([pending, kernels.filter(({ why }) => why?.startsWith('no library'))]).toEqual([0, []])
      const explained = explain((t: Tensor) => t.mul(2).sum(), { backend: 'inductor', options: { emitter: 'c' } })(torch.ones([50]))
      expect(String(explained)).toMatch(/Kernels:\n {2}compiled_graph_\d+_k0 \(c\): .*sum/)
      const launches: string[] = []
      const stop = onEvent((event) => void (event.kind === 'launch' && launches.push(`${event.engine} ${event.threads}`)), { kinds: ['launch'] })
      compile((t: Tensor) => t.mul(3), { options: { emitter: 'c' } })(torch.ones([50]))
      stop()
      expect(launches).toEqual(['c 1'])
    })

    test.each([true, false])('that add up functions have the bits of WebAssembly when their libraries are there, strict: %s', async (strict) => {
      await native.init({ cache: join(work, 'programs') })
      torch.manualSeed(3)
      const x = torch.randn([64, 1000])
      const sums = (t: Tensor): Tensor => torch.cat([t.exp().sum(1), t.tanh().mul(t).sum(1), t.sigmoid().sum(0)])
      const wasm = bits([compile(sums, { options: { strict, emitter: 'wasm' } })(x)])
      const f = compile(sums, { options: { strict } })
      expect(bits([f(x)])).toEqual(wasm)
      await native.ready()
      const engines: unknown[] = []
      for (let i = 0; i < 20; i++) {
        expect(bits([f(x)])).toEqual(wasm)
        engines.push(...f.kernels().map(({ computedBy }) => computedBy?.().engine))
      }
      expect(engines).toContain('c')
    })

    test('with the emitter c go on with WebAssembly where the compiler fails', () => {
      const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
      vi.spyOn(Workshop.prototype, 'libraryNow').mockImplementation(() => {
        throw new Error('no room')
      })
      const f = compile((t: Tensor) => t.mul(5).add(1), { options: { emitter: 'c' } })
      expect(f(torch.ones([7])).toArray()).toEqual([6, 6, 6, 6, 6, 6, 6])
      expect(f.kernels()[0]?.computedBy?.().engine).toBe(torch.backends.wasm.engine)
      expect(warn.mock.calls.map(([text]) => String(text))).toEqual([expect.stringContaining('stay with WebAssembly')])
    })

    test('are compared on machine code by name, and a fault of it is found there', async () => {
      const gm = symbolicTrace((x: Tensor) => torch.relu(x.mul(2)).sum(1))
      const result = await compareBackends(gm, [torch.randn([4, 100])], { backends: ['inductor:wasm', 'inductor:c'] })
      expect([...result.culprits.values()]).toEqual([null, null])
    })

    test('with functions that JavaScript computes stay with WebAssembly, which is said', async () => {
      const x = torch.linspace(0.1, 3, 50, { dtype: 'float64' })
      expect(compile((t: Tensor) => t.exp())(x).toArray()).toEqual(x.exp().toArray())
      await native.ready()
      expect(native.stats().kernels).toContainEqual(expect.objectContaining({ why: 'exp of float64 is a function of JavaScript', gain: null }))
    })
  })
})
