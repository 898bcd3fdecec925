// Machine code on threads: the bits of one thread, and what happens where a thread cannot load a library, dies in the middle of a launch, or the heap grows.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Tensor } from 'tensorfx'
import { hashOf, randomFrom } from '../../scripts/fuzz/random.mjs'
import { whyKernelIsNotInC } from '../../src/kernels/c/emitC.ts'
import { dtypeInfo } from '../../src/kernels/numbers/dtype.ts'
import type { Kernel } from '../../src/kernels/ir/loopIr.ts'
import { scratchBytes } from '../../src/kernels/ir/scratchLayout.ts'
import { splitKernel } from '../../src/kernels/threads/split.ts'
import type { Step } from '../../src/kernels/threads/split.ts'
import { tripsOf } from '../../src/kernels/threads/work.ts'
import { nodeScript } from '../../src/kernels/threads/workers.ts'
import { removeFolder } from '../helpers/folder.ts'
import { rotation } from '../helpers/rotation.ts'
import { hasCompiler } from '../kernels/c/runC.ts'
import { valuesOf } from '../kernels/harness.ts'
import type { Args } from '../kernels/harness.ts'
import { problemsOf } from '../kernels/problems/all.ts'
import { RandomKernel } from '../kernels/problems/randomKernel.ts'
import { onOne, onThreads, untilReady } from '../kernels/threads/fresh.ts'

type Package = Awaited<ReturnType<typeof withMachineCode>>

const work = mkdtempSync(join(tmpdir(), 'tensorfx-native-threads-'))
afterAll(() => removeFolder(work))
beforeEach(() => void vi.resetModules())
afterEach(() => void vi.restoreAllMocks())

/** The package on threads, with machine code. `script` changes what workers run. */
async function withMachineCode(threads: number, script?: (script: string) => string) {
  const pack = await onThreads(threads)
  const native = await import('../../src/entries/native.ts')
  if (script !== undefined)
    pack.setWorkerHost({
      maySleep: true,
      start(start, lost) {
        const worker = new Worker(script(nodeScript()), { eval: true, workerData: start, execArgv: [] })
        worker.on('error', lost)
        worker.on('exit', lost)
        worker.unref()
        return { terminate: () => void worker.terminate() }
      },
    })
  await native.init({ cache: join(work, 'cache') })
  const { free, tryAllocate } = await import('../../src/kernels/memory/heap.ts')
  return { ...pack, native, free, tryAllocate }
}

/** A part of the script with another text in its place. */
const changed =
  (from: string, to: string) =>
  (script: string): string => {
    if (!script.includes(from)) throw new Error(`workers do not run ${from}`)
    return script.replace(from, () => to)
  }

type Program = (x: Tensor) => readonly Tensor[]
/** Some kinds of kernels. */
const someKinds: Program = (x) => [x.mm(x.t()).softmax(-1), x.t().contiguous(), x.sum(0), x.add(1).mul(x)]
/** Kernels whose chunks may be run again: none of them reads what it writes. */
const copies: Program = (x) => [x.t().contiguous(), x.add(1).mul(x)]

const bytesOf = (tensors: readonly { toTypedArray(): ArrayBufferView }[]): readonly string[] =>
  tensors.map((tensor) => Buffer.from(tensor.toTypedArray().buffer as ArrayBuffer).toString('base64'))

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** What a compiled program computes on one thread, and a function that computes it on all, once the parts of its kernels are compiled. */
async function prepared(pack: Package, program: Program = someKinds) {
  const f = pack.compile(program, { options: { emitter: 'c' } })
  const x = pack.torch.randn([200, 51])
  const wanted = onOne(pack, () => bytesOf(f(x)))
  expect(pack.native.stats().kernels.filter(({ why }) => why !== null)).toEqual([])
  f(x)
  await pack.native.ready()
  const threads = (): number => Math.max(...f.kernels().map(({ computedBy }) => computedBy?.().threads ?? 0))
  return { f, wanted, compute: () => bytesOf(f(x)), threads }
}

/** A kernel with its arguments on the heap. */
function onHeap({ kernels, tryAllocate, free }: Package, kernel: Kernel, args: Args) {
  const buffers = kernel.params.flatMap((param) => (param.kind === 'buffer' ? [{ param, data: args[param.name] as Uint8Array }] : []))
  const places = new Map(buffers.map(({ data }) => [data, tryAllocate(data.byteLength + 64)]))
  const numbers = kernel.params.map((param) =>
    param.kind === 'buffer' ? (places.get(args[param.name] as Uint8Array) ?? 0) : Number(args[param.name]),
  )
  return {
    /** Runs it, and returns what the buffers hold. */
    run(of: { readonly run: (...args: number[]) => void; readonly kernel: Pick<Kernel, 'scratch'> }): unknown {
      for (const [{ buffer, byteOffset, byteLength }, at] of places) kernels.heapBytes().set(new Uint8Array(buffer, byteOffset, byteLength), at)
      const bytes = scratchBytes(of.kernel, ({ name }) => Number(args[name]))
      const scratch = tryAllocate(bytes)
      of.run(...numbers, scratch)
      free(scratch, bytes)
      return buffers.map(({ param, data }) => {
        const at = places.get(data) ?? 0
        const copy = kernels.heapBytes().slice(at, at + data.byteLength)
        return valuesOf(param.dtype, new dtypeInfo[param.dtype].array(copy.buffer))
      })
    },
  }
}

/** Whether threads can share a loop of the kernel in a call with these arguments. */
function canShare(kernel: Kernel, args: Args): boolean {
  const of = ({ name }: { readonly name: string }): number => Number(args[name])
  const some = (steps: readonly Step[]): boolean =>
    steps.some((step) => {
      if (step.kind === 'divided') return tripsOf(step.stmt.loop.extent, step.stmt.loop.step, of) > 1
      return step.kind === 'either' ? some([step.outer, step.inner]) : step.kind === 'repeated' && some(step.steps)
    })
  return some(splitKernel(kernel)?.steps ?? [])
}

interface Drawn {
  readonly what: string
  readonly kernel: Kernel
  /** The same in the tiles of machine code. */
  readonly wide: Kernel
  readonly args: Args
}

/** A problem of each schedule with a loop that threads can share, others each day, and kernels of drawn loops. */
function drawn(): readonly Drawn[] {
  const found: Drawn[] = []
  for (const [name, draw] of Object.entries(problemsOf))
    for (let tries = 0; tries < 40; tries++) {
      const id = `${name} ${tries} threads of machine code ${rotation}`
      const { what, kernels, args } = draw(randomFrom(hashOf(id)))
      const [own, wide] = [kernels('wasm')[0]?.kernel, kernels('native8')[0]?.kernel]
      if (own === undefined || wide === undefined || whyKernelIsNotInC(wide) !== null || !canShare(wide, args)) continue
      found.push({ what: `${id}: ${what}`, kernel: own, wide, args })
      break
    }
  const floats = (value: (i: number) => number): Float32Array => Float32Array.from({ length: 4000 }, (_, i) => value(i))
  const args = { out: floats((i) => i / 7), a: floats(Math.sin), n: 2 }
  const random = Array.from({ length: 4 }, (_, i) => 4 * rotation + i).map((seed) => ({ seed, kernel: new RandomKernel(seed).kernel() }))
  return [...found, ...random.map(({ seed, kernel }) => ({ what: `seed ${seed}`, kernel, wide: kernel, args }))]
}

describe.skipIf(!hasCompiler)(`machine code on threads${hasCompiler ? '' : ': skipped, there is no C compiler'}`, () => {
  test.each([[true], [false]])(
    'has the bits of one thread of WebAssembly on 1, 2 and 3 threads, strict: %s',
    { timeout: 300_000 },
    async (strict) => {
      const pack = await withMachineCode(3)
      const { kernels, poolState, torch, native } = pack
      const compiled = kernels.withComputing({ accuracy: strict ? 'strict' : 'default' }, () =>
        drawn().map(({ what, kernel, wide, args }) => {
          const code = kernels.withComputing({ emitter: 'c' }, () => kernels.compileKernel(kernel, () => wide))
          const wasm = kernels.withComputing({ emitter: 'wasm' }, () => kernels.compileKernel(kernel))
          return { what, code, place: onHeap(pack, kernel, args), wanted: onOne(pack, () => onHeap(pack, kernel, args).run(wasm)) }
        }),
      )
      expect(compiled.length).toBeGreaterThan(15)
      // The first calls on threads ask for the parts.
      for (const { place, code } of compiled) place.run(code)
      await native.ready()
      await untilReady(() => {
        for (const { place, code } of compiled) place.run(code)
        return poolState.chunksByWorkers > 20
      })
      let divided = 0
      for (const threads of [1, 2, 3]) {
        torch.setNumThreads(threads)
        for (const { what, code, place, wanted } of compiled) {
          expect(place.run(code), `${what}, on ${threads} threads`).toEqual(wanted)
          const by = code.computedBy()
          expect(by.engine, what).toBe('c')
          expect(by.threads === 1 || by.threads === threads).toBe(true)
          if (by.threads === 2) divided++
        }
      }
      expect(divided).toBeGreaterThan(compiled.length / 2)
      expect(native.stats().kernels.filter(({ why }) => why !== null)).toEqual([])
    },
  )

  test('goes on when the heap has grown between launches, of which libraries are told', async () => {
    const pack = await withMachineCode(3)
    const { compute, wanted, threads } = await prepared(pack)
    const byWorkers = async (): Promise<void> => {
      const before = pack.poolState.chunksByWorkers
      await untilReady(() => {
        expect(compute()).toEqual(wanted)
        return pack.poolState.chunksByWorkers > before
      })
      expect(threads()).toBe(3)
    }
    await byWorkers()
    const before = pack.kernels.heapBytes().length
    const big = pack.torch.ones([before / 4])
    expect(pack.kernels.heapBytes().length).toBeGreaterThan(before)
    await byWorkers()
    expect(big.sum().item()).toBe(before / 4)
  })

  test('is compared with WebAssembly on threads, too', async () => {
    const pack = await withMachineCode(3)
    await pack.native.init({ check: true })
    const { compute, wanted } = await prepared(pack)
    for (let i = 0; i < 20; i++) {
      expect(compute()).toEqual(wanted)
      await pause(2)
    }
    expect(pack.poolState.chunksByWorkers).toBeGreaterThan(0)
  })

  test.each([
    ['finds no koffi', changed('require(koffi)', "require('./no koffi here')"), /another one cannot load it \(Cannot find module '.\/no koffi here'/],
    [
      'sees the heap at another address',
      changed('isHeap(new Uint8Array(memory.buffer)) === 1', 'isHeap(new Uint8Array(64)) === 1'),
      /another one cannot load it \(its library takes the heap to be at another address\)/,
    ],
  ])('a thread that %s: one notice, one thread, the same bits; WebAssembly goes on on threads', async (_, script, notice) => {
    const warned = vi.spyOn(console, 'warn').mockReturnValue()
    const pack = await withMachineCode(3, script)
    const { compute, wanted, threads } = await prepared(pack)
    await untilReady(() => {
      expect(compute()).toEqual(wanted)
      return warned.mock.calls.length > 0
    })
    const before = pack.poolState.launches
    for (let i = 0; i < 10; i++) expect(compute()).toEqual(wanted)
    expect([threads(), pack.poolState.launches - before]).toEqual([1, 0])
    expect(warned.mock.calls.map(([text]) => String(text))).toEqual([expect.stringMatching(notice)])
    const x = pack.torch.ones([4096])
    const byWorkers = pack.poolState.chunksByWorkers
    await untilReady(() => {
      x.add(1).dispose()
      return pack.poolState.chunksByWorkers > byWorkers
    })
  })

  const begins = 'kernel(...args, first, Math.min(chunk, extent - first))'
  test.each([
    ['dies in the middle of a launch', `if (index === 0 && globalThis.machine) { ${begins}; process.exit(1) }`, 1],
    ['never comes back', 'if (index === 0 && globalThis.machine) for (;;);', 1],
    ['fails', "if (index === 0 && globalThis.machine) throw new Error('broken')", 0],
  ])('a thread that %s: the caller computes its part, the others go on', async (_, does, notices) => {
    const warned = vi.spyOn(console, 'warn').mockReturnValue()
    const pack = await withMachineCode(3, (script) =>
      changed('require(koffi).load(file)', '(globalThis.machine = true, require(koffi).load(file))')(changed(begins, `${does}\n${begins}`)(script)),
    )
    pack.poolState.nativePatience = 100
    const { compute, wanted } = await prepared(pack, copies)
    for (let i = 0; i < 2000 && pack.poolState.redone === 0; i++) {
      expect(compute()).toEqual(wanted)
      await pause(2)
    }
    expect(pack.poolState.redone).toBeGreaterThan(0)
    const before = pack.poolState.chunksByWorkers
    await untilReady(() => {
      expect(compute()).toEqual(wanted)
      return pack.poolState.chunksByWorkers > before + 5
    })
    expect(warned.mock.calls.length).toBe(notices)
  })

  test('a library whose file was replaced before threads load it: none of them runs the other one', async () => {
    vi.spyOn(console, 'warn').mockReturnValue()
    const pack = await withMachineCode(3)
    const folder = join(work, 'cache')
    const { compute, wanted } = await prepared(pack)
    for (const name of readdirSync(folder)) {
      if (!name.endsWith('.so')) continue
      rmSync(join(folder, name))
      writeFileSync(join(folder, name), 'no library', { mode: 0o700 })
    }
    for (let i = 0; i < 50; i++) {
      expect(compute()).toEqual(wanted)
      await pause(2)
    }
  })
})
