// Kernels as machine code: the same bits, whatever becomes of the compiler, of the folder of libraries, or of the heap meanwhile.
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { compile, torch } from '../../src/index.ts'
import type { Tensor } from '../../src/index.ts'
import * as native from '../../src/entries/native.ts'
import { at, bufferParam, call, constant, forLoop, load, loopVar, store } from '../../src/kernels/ir/loopIr.ts'
import type { Kernel } from '../../src/kernels/index.ts'
import { heapView, tryAllocate } from '../../src/kernels/memory/heap.ts'
import { Workshop, findCompiler } from '../../src/native/compiler.ts'
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
    expect(() => native.setEnabled(1 as never)).toThrow('native.setEnabled: enabled must be true or false, got 1')
    await expect(native.init(null as never)).rejects.toThrow('native.init: options must be an object, got null')
  })
})

describe('a kernel with two functions', () => {
  test('computes both ways when it is checked, and names the kernel and the place of a difference', () => {
    const [out, a] = [tryAllocate(4000), tryAllocate(4000)]
    const wasm = (...args: number[]): void => heapView('float32').fill(2, (args[0] ?? 0) / 4, (args[0] ?? 0) / 4 + 1000) as unknown as void
    const wrong = (...args: number[]): void => {
      wasm(...args)
      heapView('float32')[(args[0] ?? 0) / 4 + 7] = 2.5
    }
    const kernel = new NativeKernel(addOne(), wasm, addOne(), true)
    kernel.native = wasm
    kernel.call([out, a])
    kernel.native = wrong
    expect(() => kernel.call([out, a])).toThrow(/the library of the kernel add_one computes other bits than WebAssembly: first in byte 30 of out/)
  })

  test('runs the faster one once both were timed, and neither for little work', () => {
    const ran: string[] = []
    const wait = (ms: number): void => {
      const end = performance.now() + ms
      while (performance.now() < end);
    }
    const kernel = new NativeKernel(
      { ...addOne(), body: [forLoop(loopVar('j', 10), 'serial', addOne().body)] },
      () => void (ran.push('wasm'), wait(1)),
      { ...addOne(), body: [forLoop(loopVar('j', 10), 'serial', addOne().body)] },
      false,
    )
    kernel.native = () => void ran.push('native')
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
  const source = 'int tfx_one(void) { return 1; }\n'

  test('a library is compiled once, and again where the one that is kept is not whole or others may write to it', async () => {
    const folder = join(work, 'kept')
    const workshop = new Workshop(findCompiler(), folder)
    const first = await workshop.library(source)
    expect(first.isNew).toBe(true)
    expect((await workshop.library(source)).isNew).toBe(false)
    expect((await new Workshop(findCompiler(), folder).library(source)).isNew).toBe(false)
    expect((await workshop.library(`${source}\n`)).isNew).toBe(true)
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
    const other = await new Workshop(findCompiler(), folder).library(source)
    expect(other.isNew).toBe(true)
    expect(other.file.startsWith(folder)).toBe(false)
    expect((await new Workshop(findCompiler(), '/dev/null/folder').library(source)).isNew).toBe(true)
    expect(warn.mock.calls.map(([text]) => String(text))).toEqual([
      expect.stringContaining('others may write to'),
      expect.stringContaining('no compiled code can be kept in /dev/null/folder'),
    ])
    expect(own.compiler.version).toMatch(/\d/)
  })

  test('what the compiler says when it fails is in the error', async () => {
    await expect(new Workshop(findCompiler(), join(work, 'fails')).library('int f( {')).rejects.toThrow(/failed: .*error/s)
    expect(readdirSync(join(work, 'fails'))).toEqual([])
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
      native.setEnabled(false)
      expect(run()).toEqual(plain)
      expect(bits([compile((t: Tensor) => t.mul(3))(torch.ones([9]))])).toEqual(bits([torch.ones([9]).mul(3)]))
      await native.ready()
      expect(native.stats().kernels).toHaveLength(kernels.length)
      native.setEnabled(true)
      expect(run()).toEqual(plain)
    })

    test('with functions that JavaScript computes stay with WebAssembly, which is said', async () => {
      const x = torch.linspace(0.1, 3, 50, { dtype: 'float64' })
      expect(compile((t: Tensor) => t.exp())(x).toArray()).toEqual(x.exp().toArray())
      await native.ready()
      expect(native.stats().kernels).toContainEqual(expect.objectContaining({ why: 'exp of float64 is a function of JavaScript', gain: null }))
    })
  })
})
