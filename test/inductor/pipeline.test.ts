// The stages of a compilation, and what hangs on them.
import { afterEach, describe, expect, it } from 'vitest'
import { fx, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Compilation, StageRecorder, compileFx, defineTemplate, onCompile, registerTemplate } from 'tensorfx/inductor'
import type { CompileObserver } from 'tensorfx/inductor'
import { PassError, setVerification } from '../../src/pipeline/index.ts'

const STAGES = ['lower', 'removeDeadNodes', 'fuse', 'place', 'planMemory', 'emit', 'assemble']

let cleanups: (() => unknown)[] = []
const observe = (observer: CompileObserver): void => void cleanups.push(onCompile(observer))
afterEach(() => {
  for (const undo of cleanups) undo()
  cleanups = []
})

const program = fx.symbolicTrace((x: Tensor) => {
  const y = torch.relu(x.mul(2))
  return [y, y.sum(1)]
})
const input = torch.arange(12).reshape([3, 4])

describe('the stages of a compilation', () => {
  it('run in order, and the compiled graph keeps their times', () => {
    const { stages } = compileFx(program, [input])
    expect(stages.map((stage) => stage.name)).toEqual(STAGES)
    for (const { milliseconds } of stages) expect(milliseconds).toBeGreaterThanOrEqual(0)
  })

  it('say whether they changed anything: removeDeadNodes only where a node is dead', () => {
    const changed = (f: (x: Tensor) => unknown): boolean | undefined =>
      compileFx(fx.symbolicTrace(f), [input]).stages.find((stage) => stage.name === 'removeDeadNodes')?.changed
    expect(changed((x) => x.mul(2))).toBe(false)
    expect(
      changed((x) => {
        const y = x.mul(2)
        x.sum()
        return y
      }),
    ).toBe(true)
  })

  it('are recorded with the texts before and after', () => {
    const recorder = new StageRecorder()
    observe(recorder)
    compileFx(program, [input])
    const { records } = recorder
    expect(records.map((record) => record.name)).toEqual(STAGES)
    expect(new Set(records.map((record) => record.program)).size).toBe(1)
    // Each stage starts from what the one before it made.
    expect(records.slice(1).map((record) => record.before)).toEqual(records.slice(0, -1).map((record) => record.after))
    const [lower, , fuse, place, plan, emit, assemble] = records.map((record) => record.after.replaceAll(/compiled_graph_\d+/g, 'compiled_graph'))
    expect(records[0]?.before).toContain('function forward(x)')
    expect(lower).toMatchInlineSnapshot(`
      "inputs in0 float32[3, 4]
      buf0 float32[3, 4] = mul: pointwise over [3, 4]; reads in0(4, 1)
      buf1 float32[3, 4] = relu: pointwise over [3, 4]; reads buf0(4, 1)
      buf2 float32[3] = sum: reduction by add of [3, 4] along 1; reads buf1(4, 1)
      return buf1(4, 1)[3, 4], buf2(1)[3]"
    `)
    expect(fuse).toMatchInlineSnapshot(`
      "group 0, loops
        buf0 float32[3, 4] = mul: pointwise over [3, 4]; reads in0(4, 1)
        buf1 float32[3, 4] = relu: pointwise over [3, 4]; reads buf0(4, 1)
        buf2 float32[3] = sum: reduction by add of [3, 4] along 1; reads buf1(4, 1)"
    `)
    expect(place).toMatchInlineSnapshot(`
      "buf1 float32[3, 4]
      buf2 float32[3]"
    `)
    expect(plan).toBe('arena of 0 bytes')
    expect(emit).toMatchInlineSnapshot(`
      "kernel fused_mul_relu_sum(inout float32 b0[], inout float32 b1[], inout float32 b2[]) {
        for i0 < 3 {
          float32 a0 = 0f
          for r1 < 4 simd {
            let $0 = max((b0[i0 * 4 + r1] * 2f), 0f)
            b1[i0 * 4 + r1] = $0
            a0 add= $0
          }
          float32 v1 = a0
          b2[i0] = v1
        }
      }"
    `)
    expect(assemble).toMatchInlineSnapshot(`
      "function compiled_graph(inputs) {
        const copies = begin(inputs)
        try {
          const i0 = addressOf(inputs[0], copies)
          const t1 = empty(c0, 'float32')
          const a_t1 = addressOf(t1, copies)
          const t2 = empty(c1, 'float32')
          const a_t2 = addressOf(t2, copies)
          copies.written(t1.storage.block)
          copies.written(t2.storage.block)
          c2(i0, a_t1, a_t2) // mul relu sum
          copies.finish()
          return [t1, t2]
        } finally {
          end(copies)
        }
      }"
    `)
  })

  it('show temporaries, reductions, templates, eager kernels and scalars in their texts', () => {
    const recorder = new StageRecorder()
    observe(recorder)
    const f = fx.symbolicTrace((x: Tensor, s: number) => {
      const y = torch.softmax(torch.mul(x, s), 1).mm(x.t())
      return [torch.cumsum(y, 0).slice(0, 1, 2), s, 'text']
    })
    const compiled = compileFx(f, [input, 2])
    const after = (name: string): string => recorder.records.find((record) => record.name === name)?.after ?? ''
    expect(after('lower')).toContain('inputs in0 float32[3, 4], in1 scalar')
    expect(after('lower')).toContain('= amax: reduction by max of [3, 4] along 1; reads')
    expect(after('lower')).toContain('= mm: template matmul over [3, 3]; reads')
    expect(after('lower')).toMatch(/buf\d+_0 float32\[3, 3\] = cumsum: eager kernel; reads/)
    expect(after('lower')).toMatch(/return buf\d+_0\(3, 1\)\+3\[1, 3\], in1, text$/)
    expect(after('fuse')).toContain('group 1, template')
    expect(after('planMemory')).toMatch(/^arena of \d+ bytes\n {2}buf\d+ float32\[3, 4\] at 0/)
    expect(compiled.arenaBytes).toBeGreaterThan(0)
  })

  it('tell observers when one fails, and go no further', () => {
    const events: string[] = []
    observe({
      before: (stage) => events.push(`before ${stage.name}`),
      after: (stage) => events.push(`after ${stage.name}`),
      failed: (stage, _, error) => events.push(`failed ${stage.name}: ${(error as Error).message}`),
    })
    const inPlace = fx.symbolicTrace((x: Tensor) => x.add_(1))
    expect(() => compileFx(inPlace, [input])).toThrow(/add_ writes in place/)
    expect(events).toEqual(['before lower', expect.stringMatching(/^failed lower: .*writes in place/)])
  })

  it('are not observed once the observer is removed', () => {
    let count = 0
    const stop = onCompile({ before: () => count++ })
    compileFx(program, [input])
    expect(count).toBe(STAGES.length)
    stop()
    compileFx(program, [input])
    expect(count).toBe(STAGES.length)
  })
})

describe('verification between stages', () => {
  /** A template whose loops do not visit each element once. */
  const wrong = defineTemplate<Tensor>({
    name: 'wrong',
    ops: [torch.relu],
    match: (opCall) => opCall.tensor('self'),
    spec: (self) => ({ out: { shape: self.shape, dtype: self.dtype }, iter: [5], reads: [] }),
    emit: () => {
      throw new Error('emitted')
    },
  })

  it('is on in these tests, and stops at the stage that left something wrong', () => {
    cleanups.push(registerTemplate(wrong))
    const compiling = (): unknown => compileFx(program, [input])
    expect(compiling).toThrow(PassError)
    expect(compiling).toThrow(
      /pass 'lower' left a value that is not well formed: .*node buf1 .*template wrong.*: its loops run 5 times for 12 elements/,
    )
  })

  it('is off where it was turned off', () => {
    cleanups.push(registerTemplate(wrong))
    const before = setVerification(false)
    cleanups.push(() => setVerification(before))
    expect(before).toBe(true)
    expect(() => compileFx(program, [input])).toThrow('emitted')
  })

  it('lints the graph', () => {
    const gm = fx.symbolicTrace((x: Tensor) => x.mul(2))
    const [x, mul] = [...gm.graph.nodes]
    const before = setVerification(false)
    cleanups.push(() => setVerification(before))
    expect(x?.op).toBe('placeholder')
    // A second node of the same name: the graph still runs.
    Object.defineProperty(mul, 'name', { value: x?.name })
    expect(() => compileFx(gm, [input])).not.toThrow()
    setVerification(true)
    expect(() => compileFx(gm, [input])).toThrow(/pass 'lower' left a value that is not well formed/)
  })
})

describe('a compilation', () => {
  it('has no result of a stage that has not run, and its code as text', () => {
    const compilation = new Compilation('mine', program, [], new Map())
    expect(compilation.text).toBe(program.code)
    expect(() => compilation.get('ir')).toThrow('the compilation of mine has no ir yet')
    expect(compilation.set('plan', { offsets: new Map(), bytes: 64 })).toBe(true)
    expect(compilation.get('plan').bytes).toBe(64)
    expect(compilation.text).toBe('arena of 64 bytes')
  })
})
