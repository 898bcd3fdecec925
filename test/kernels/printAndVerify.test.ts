// The text form of kernels, and the errors of their specification.
import { describe, expect, test } from 'vitest'
import { KernelError } from '../../src/kernels/errors.ts'
import {
  accumulate,
  assign,
  at,
  bufferParam,
  call,
  cast,
  constant,
  declare,
  forLoop,
  iota,
  load,
  local,
  loopVar,
  read,
  scalar,
  scalarParam,
  sizeParam,
  store,
} from '../../src/kernels/loopIr.ts'
import type { Expr, Kernel, Param, Stmt } from '../../src/kernels/loopIr.ts'
import { printKernel } from '../../src/kernels/print.ts'
import { verifyKernel } from '../../src/kernels/verify.ts'
import { emitKernel } from '../../src/kernels/wasm/emit.ts'

const n = sizeParam('n')
const i = loopVar('i', n)
const j = loopVar('j', 8)
const [out, a] = [bufferParam('out', 'float32', 'write'), bufferParam('a', 'float32')]
const acc = local('acc', 'float32')
const f32 = (value: number): Expr => constant('float32', value)
const kernel = (body: readonly Stmt[], params: readonly Param[] = [out, a, n]): Kernel => ({ name: 'k', params, body })

describe('text', () => {
  test('a kernel reads like the loops that it is', () => {
    const mask = call('lt', iota(j), constant('int32', 5))
    const body = [
      forLoop(i, 'serial', [
        declare(acc, f32(0)),
        forLoop(j, 'simd', [
          accumulate(
            acc,
            'add',
            call(
              'exp',
              load(
                a,
                {
                  base: 2,
                  terms: [
                    { loop: i, stride: n },
                    { loop: j, stride: 1 },
                  ],
                  dynamic: [],
                },
                mask,
              ),
            ),
          ),
        ]),
        store(out, at([i, 1]), call('div', read(acc), f32(-0))),
      ]),
    ]
    expect(printKernel(kernel(body))).toMatchInlineSnapshot(`
      "kernel k(out float32 out[], in float32 a[], size n) {
        for i < n {
          float32 acc = 0f
          for j < 8 simd {
            acc add= exp(((j < 5) ? a[2 + i * n + j] : 0))
          }
          out[i] = (acc / -0f)
        }
      }"
    `)
  })

  test('a shared expression is written once, and again after a local that it reads has changed', () => {
    const x = load(a, at([i, 1]))
    const square = call('mul', x, x)
    const next = call('add', read(acc), square)
    const body = [forLoop(i, 'simd', [declare(acc, square), store(out, at([i, 1]), next), assign(acc, next), store(out, at([i, 1]), next)])]
    expect(printKernel(kernel(body))).toMatchInlineSnapshot(`
      "kernel k(out float32 out[], in float32 a[], size n) {
        for i < n simd {
          let $0 = a[i]
          let $1 = ($0 * $0)
          float32 acc = $1
          let $2 = (acc + $1)
          out[i] = $2
          acc = $2
          let $3 = (acc + $1)
          out[i] = $3
        }
      }"
    `)
  })

  test('kernels that differ only in which loads are shared have different texts, because a shared load keeps its value', () => {
    const io = bufferParam('io', 'float32', 'readwrite')
    const x = load(io, at([i, 1]))
    const body = (second: Expr): Stmt[] => [forLoop(i, 'simd', [store(io, at([i, 1]), call('neg', x)), store(out, at([i, 1]), second)])]
    expect(printKernel(kernel(body(x), [out, io, n]))).not.toBe(printKernel(kernel(body(load(io, at([i, 1]))), [out, io, n])))
  })

  test('two loops of the same name are told apart', () => {
    const other = loopVar('i', 4)
    const nest = (first: typeof i, second: typeof i): string =>
      printKernel(kernel([forLoop(i, 'serial', [forLoop(other, 'serial', [store(out, at([first, 1], [second, 4]), f32(0))])])]))
    expect(nest(i, other)).not.toBe(nest(other, i))
  })

  test('a deeply shared expression has a short text and a small module', () => {
    let x: Expr = iota(i)
    for (let k = 0; k < 60; k++) x = call('add', x, x)
    const target = bufferParam('out', 'int32', 'write')
    const deep = kernel([forLoop(i, 'simd', [store(target, at([i, 1]), x)])], [target, n])
    expect(printKernel(deep).length).toBeLessThan(3000)
    verifyKernel(deep)
    expect(emitKernel(deep).length).toBeLessThan(6000)
  })
})

describe('verifyKernel names the statement and the rule', () => {
  const wrong = (body: readonly Stmt[], message: RegExp, params?: readonly Param[]): void => {
    const verify = (): void => verifyKernel(kernel(body, params))
    expect(verify).toThrow(KernelError)
    expect(verify).toThrow(message)
  }
  const x = load(a, at([i, 1]))

  test('parameters are listed once and used as declared', () => {
    wrong([], /parameter a: two parameters have this name/, [a, a])
    wrong([store(out, at(), load(bufferParam('b', 'float32'), at()))], /kernel k, statement 1 \(store to out\): the buffer b is not among/)
    wrong([store(a, at(), f32(0))], /the buffer a is read-only/)
    wrong([store(out, at(), f32(0), 'add')], /a combining store reads out/)
    wrong([store(out, at(), scalar(scalarParam('s', 'float32')))], /the scalar s is not among/)
    wrong([forLoop(loopVar('i', sizeParam('m')), 'serial', [])], /the size m is not among/)
  })

  test('loops and locals are used where they are in scope', () => {
    wrong([store(out, at([i, 1]), f32(0))], /uses the loop variable i outside its loop/)
    wrong([forLoop(i, 'serial', []), store(out, at(), cast(iota(i), 'float32'))], /statement 2 .*the loop variable i is read outside its loop/)
    wrong([forLoop(i, 'serial', [forLoop(i, 'serial', [])])], /statement 1\.1 \(serial loop over i\): the loop variable i runs already/)
    wrong([assign(acc, f32(0))], /the local acc is not declared here/)
    wrong([forLoop(i, 'serial', [declare(acc, f32(0))]), store(out, at(), read(acc))], /the local acc is not declared here/)
    wrong([declare(acc, f32(0)), declare(acc, f32(0))], /acc is declared already/)
    wrong([forLoop(loopVar('z', -1), 'serial', [])], /extent -1 must be an integer/)
  })

  test('dtypes agree', () => {
    wrong([store(out, at(), constant('int32', 1))], /dtype int32 stands where float32 is needed; cast it/)
    wrong([store(out, at(), call('add', f32(1), constant('int32', 1)))], /operands of add have different dtypes, float32 and int32/)
    wrong([store(out, at(), call('where', f32(1), f32(1), f32(2)))], /dtype float32 stands where bool/)
    wrong([store(out, at(), call('shl', f32(1), f32(1)))], /shl is not defined for float32, only for int32/)
    wrong([store(out, at(), call('neg', f32(1), f32(2)))], /neg takes 1 operands, not 2/)
    wrong([store(out, { base: 0, terms: [], dynamic: [{ value: f32(1), stride: 1 }] }, f32(1))], /dtype float32 stands where int32/)
  })

  test('iterations of a simd loop are independent', () => {
    const start = declare(acc, f32(0))
    wrong([start, forLoop(i, 'simd', [assign(acc, x)])], /the simd loop over i assigns acc, declared outside/)
    wrong([start, forLoop(i, 'simd', [accumulate(acc, 'add', x), store(out, at([i, 1]), read(acc))])], /reads acc, which it accumulates into/)
    wrong([start, forLoop(i, 'simd', [accumulate(acc, 'add', x), accumulate(acc, 'max', x)])], /with both add and max/)
    wrong([forLoop(i, 'simd', [forLoop(j, 'simd', [])])], /inside the simd loop over i must be serial/)
    const io = bufferParam('io', 'float32', 'readwrite')
    wrong([forLoop(i, 'simd', [store(io, at(), x, 'add')])], /combine into one element of io/, [io, a, n])
  })
})
