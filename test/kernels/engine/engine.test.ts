// The engines: plain WebAssembly and relaxed SIMD. What differs is rounding, and `strict` code is the same on both.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { compile, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { currentEngine, engineFor, findsRelaxedSimd, hasRelaxedSimd, processEngine, relaxedSettingOf } from '../../../src/kernels/engine/engine.ts'
import { setStrict, withStrict } from '../../../src/kernels/engine/computing.ts'
import { at, bufferParam, call, forLoop, load, loopVar, sizeParam, store } from '../../../src/kernels/ir/loopIr.ts'
import type { Kernel } from '../../../src/kernels/ir/loopIr.ts'
import { emitKernel } from '../../../src/kernels/emit/emit.ts'

afterEach(() => {
  setStrict(false)
})

/** f32x4.relaxed_madd and f32x4.relaxed_nmadd, as bytes. */
const fuses = (wasm: Uint8Array): boolean =>
  wasm.some((byte, i) => byte === 0xfd && (wasm[i + 1] === 0x85 || wasm[i + 1] === 0x86) && wasm[i + 2] === 2)

function expKernel(): Kernel {
  const n = sizeParam('n')
  const i = loopVar('i', n)
  const [out, a] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32')]
  return { name: 'exp', params: [out, a, n], body: [forLoop(i, 'simd', [store(out, at([i, 1]), call('exp', load(a, at([i, 1]))))])] }
}

const bits = (x: Tensor): readonly number[] => [...new Uint32Array(Float32Array.from(x.toTypedArray() as Float32Array).buffer)]

describe('the engine', () => {
  it('is one for the process, and plain for strict code', () => {
    expect(processEngine()).toBe(torch.backends.wasm.engine)
    expect(currentEngine()).toBe(processEngine())
    expect(withStrict(true, currentEngine)).toBe('wasm')
    expect(currentEngine()).toBe(processEngine())
  })

  it('fuses multiply-add in kernels where the host does, and never in strict ones', () => {
    expect(fuses(emitKernel(expKernel()))).toBe(processEngine() === 'wasm-relaxed')
    expect(withStrict(true, () => fuses(emitKernel(expKernel())))).toBe(false)
  })

  it('cannot change after kernels were compiled, and refuses other values', () => {
    torch.ones([3]).exp()
    const other = processEngine() === 'wasm'
    if (!other || hasRelaxedSimd())
      expect(() => {
        torch.backends.wasm.relaxed = other
      }).toThrow(/backends\.wasm\.relaxed cannot become (true|false) after the first kernel was compiled/)
    expect(() => {
      Reflect.set(torch.backends.wasm, 'relaxed', 'yes')
    }).toThrow("backends.wasm.relaxed must be 'auto', true or false, got 'yes'.")
    expect(engineFor(false)).toBe('wasm')
  })

  it('reads the environment', () => {
    expect(['1', '0', 'auto', ''].map(relaxedSettingOf)).toEqual([true, false, 'auto', 'auto'])
    expect(() => relaxedSettingOf('no')).toThrow("TENSORFX_RELAXED must be auto, 1 or 0, got 'no'.")
  })
})

describe('the search for relaxed SIMD', () => {
  const { Module } = WebAssembly
  class Refusing extends Module {
    constructor() {
      super(Uint8Array.of())
    }
  }
  const host = (version: string | undefined, validates: boolean[], Made: typeof Module = Module): { found: boolean; flags: string[] } => {
    const flags: string[] = []
    const wasm = { validate: vi.fn(() => validates.shift() ?? false), Module: Made }
    return { found: findsRelaxedSimd({ version, wasm, setFlag: (flag) => flags.push(flag) }), flags }
  }
  const flag = '--experimental-wasm-relaxed-simd'

  it('sets a flag in Node below 22 only, and only where it is needed', () => {
    expect(host('v20.20.0', [false, false])).toEqual({ found: false, flags: [flag] })
    expect(host('v20.20.0', [true])).toEqual({ found: hasRelaxedSimd(), flags: hasRelaxedSimd() ? [] : [flag] })
    expect(host('v22.1.0', [false])).toEqual({ found: false, flags: [] })
    expect(host(undefined, [false])).toEqual({ found: false, flags: [] })
  })

  it('does not take the word of an engine that accepts the instruction and cannot compile it', () => {
    expect(host('v22.1.0', [true], Refusing)).toEqual({ found: false, flags: [] })
    expect(host('v20.1.0', [true, true], Refusing)).toEqual({ found: false, flags: [flag] })
  })

  it('goes on without it where flags cannot be set', () => {
    const setFlag = (): never => {
      throw new Error('no flags here')
    }
    expect(findsRelaxedSimd({ version: 'v20.0.0', wasm: { validate: () => false, Module }, setFlag })).toBe(false)
  })
})

describe('strict code', () => {
  const x = torch.linspace(-4, 4, 6400).view(80, 80)
  const fn = (a: Tensor): Tensor =>
    torch.nn.functional.conv2d(a.exp().matmul(a.tanh()).view(1, 1, 80, 80), a.view(16, 1, 20, 20).narrow(2, 0, 3).narrow(3, 0, 3).contiguous()).erf()

  it('has its own eager kernels, and the others stay as they are', () => {
    const before = bits(fn(x))
    const strict = withStrict(true, () => bits(fn(x)))
    expect(bits(fn(x))).toEqual(before)
    expect(withStrict(true, () => bits(fn(x)))).toEqual(strict)
    if (processEngine() === 'wasm-relaxed') expect(strict).not.toEqual(before)
    else expect(strict).toEqual(before)
  })

  it('is compiled by an option, or while deterministic algorithms are on, forward and backward (difference: deterministic-algorithms)', () => {
    const product = (a: Tensor): Tensor => a.matmul(a.sin()).exp().sum()
    const gradient = (f: (a: Tensor) => Tensor): readonly number[] => {
      const a = x.mul(0.01).detach().requiresGrad_()
      f(a).backward()
      return bits(a.grad ?? a)
    }
    const strict = withStrict(true, () => gradient(compile(product)))
    expect(gradient(compile(product, { options: { strict: true } }))).toEqual(strict)
    torch.useDeterministicAlgorithms(true)
    expect(torch.areDeterministicAlgorithmsEnabled()).toBe(true)
    expect(gradient(compile(product))).toEqual(strict)
    const loose = compile(product, { options: { strict: false } })
    const relaxed = gradient(loose)
    torch.useDeterministicAlgorithms(false)
    expect(gradient(compile(product))).toEqual(relaxed)
    if (processEngine() === 'wasm-relaxed') expect(relaxed).not.toEqual(strict)
  })

  it('refuses options that it does not have', () => {
    expect(() => compile(fn, { options: { strict: 1 as unknown as boolean } })).toThrow(
      "compile: options: option 'strict' must be true or false, got 1",
    )
    expect(() => torch.useDeterministicAlgorithms(1 as unknown as boolean)).toThrow('torch.useDeterministicAlgorithms')
  })
})
