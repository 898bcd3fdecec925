// How often a backend runs until it is clear what to say of it, and what each run may leave behind.
import { describe, expect, it } from 'vitest'
import { noGrad, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import type { Candidate, Prepared, Ran } from '../../src/debug/compare/backends.ts'
import { RIGHT } from '../../src/debug/compare/measure.ts'
import type { Measured } from '../../src/debug/compare/measure.ts'
import { taskOf } from '../../src/debug/compare/reference.ts'
import type { Task } from '../../src/debug/compare/reference.ts'
import { Trial, confirmed, repeated, runsToShow, tried, verdictOf } from '../../src/debug/compare/trial.ts'
import { present } from '../../src/errors/index.ts'
import { isolatedInputs } from '../../src/debug/runs/isolated.ts'

const t = torch.tensor
const ok = (error = 0): Measured => ({ ...RIGHT, error })
const bad = (changes: Partial<Measured> = {}): Measured => ({ ...RIGHT, status: 'differs', error: 0.5, rate: 1, ...changes })
const broken = bad({ rule: 'overwrites an input', reason: 'broken', error: Infinity })

describe('a verdict of several runs', () => {
  it('is the worst of those that are right, the first of those that are not, or that they differ', () => {
    expect(verdictOf([])).toEqual(RIGHT)
    expect(verdictOf([ok(1), ok(3), ok(2)])).toEqual(ok(3))
    expect(verdictOf([bad({ error: 0.2 }), bad({ error: 0.9 })])).toEqual(bad({ error: 0.2 }))
    const thrown = new RangeError('no')
    expect(verdictOf([ok(), bad({ reason: 'first', thrown, error: 0.2 }), bad({ error: 0.9 }), ok()])).toEqual({
      ...{ status: 'flaky', error: 0.9, rule: null, rate: 0.5, thrown },
      reason: 'not right in 2 of 4 runs with the same inputs: first',
    })
    expect(verdictOf([ok(), bad(), ok()])).toEqual({
      ...bad(),
      status: 'flaky',
      rate: 1 / 3,
      reason: 'not right in 1 of 3 runs with the same inputs',
    })
    // A rule is a rule, unless numbers are wrong too.
    expect(verdictOf([ok(), broken])).toEqual(broken)
    expect(verdictOf([ok(), broken, bad()])).toEqual({
      ...{ ...broken, status: 'flaky', rate: 2 / 3 },
      reason: 'not right in 2 of 3 runs with the same inputs: broken',
    })
  })

  it('needs two runs, sixteen where they differ, and no more for a rule', async () => {
    const runsOf = async (said: readonly Measured[], atLeast?: number): Promise<readonly [number, string]> => {
      let runs = 0
      const verdict = await repeated(async () => said[Math.min(runs++, said.length - 1)] ?? RIGHT, atLeast)
      return [runs, verdict.status]
    }
    expect(await runsOf([ok()])).toEqual([2, 'ok'])
    expect(await runsOf([ok()], 5)).toEqual([5, 'ok'])
    expect(await runsOf([bad()], 1)).toEqual([1, 'differs'])
    expect(await runsOf([bad()])).toEqual([2, 'differs'])
    expect(await runsOf([ok(), bad()])).toEqual([16, 'flaky'])
    expect(await runsOf([bad(), ok()])).toEqual([16, 'flaky'])
    expect(await runsOf([ok(), ok(), ok(), bad()], 4)).toEqual([16, 'flaky'])
    expect(await runsOf([ok(), broken])).toEqual([2, 'differs'])
    expect([runsToShow(bad()), runsToShow(broken), runsToShow({ status: 'flaky', rule: null })]).toEqual([1, 2, 16])
  })
})

const gm = symbolicTrace((x: Tensor) => [torch.mul(x, 2)])
const x = t([1, 2])
const task = (): Task => taskOf(gm, [x], 'float64')

/** A trial of a function that gets copies of the inputs. */
function trialOf(
  run: (...inputs: readonly Tensor[]) => readonly Tensor[],
  held: Readonly<Record<string, Tensor>> = {},
  changes: Partial<Task> = {},
): Trial {
  const prepared: Prepared = {
    held: new Map(Object.entries(held)),
    run: (inputs): Ran => {
      const given = isolatedInputs(inputs) as readonly Tensor[]
      return { outputs: run(...given), given }
    },
  }
  return new Trial(prepared, { ...task(), ...changes }, 1e-4)
}

const twice = (a: Tensor): readonly Tensor[] => [a.mul(2)]
const rule = (name: Measured['rule'], reason: string): object => ({ ...RIGHT, status: 'differs', error: Infinity, rule: name, reason, rate: 1 })

describe('a trial', () => {
  it('measures results, which are copies', async () => {
    const kept = t([2, 4])
    const { measured, results, overwritten } = await trialOf(() => [kept]).run()
    expect([measured, overwritten, results[0] === kept, results[0]?.toArray()]).toEqual([RIGHT, -1, false, [2, 4]])
    expect(await trialOf((a) => [a.mul(3)]).run()).toMatchObject({ measured: { status: 'differs', rule: null }, overwritten: -1 })
    const judged = await trialOf(twice).run((got) => bad({ error: got.length }))
    expect(judged.measured).toEqual(bad({ error: 1 }))
  })

  it('of what throws has no results', async () => {
    const error = new RangeError('no')
    const thrown = await trialOf(() => {
      throw error
    }).run()
    expect(thrown).toEqual({
      measured: { ...RIGHT, status: 'failed', error: NaN, reason: 'RangeError: no', rate: 1, thrown: error },
      results: [],
      overwritten: -1,
    })
  })

  it('draws the same random numbers in each run', async () => {
    const drawn: unknown[] = []
    const trial = trialOf((a) => (drawn.push(torch.rand([1]).item()), twice(a)))
    for (let i = 0; i < 2; i++) await trial.run()
    expect(drawn[0]).toBe(drawn[1])
  })

  it('sees that an input is overwritten, or not written as it should be', async () => {
    const writes = trialOf((a) => {
      const out = twice(a)
      noGrad(() => a.add_(1))
      return out
    })
    expect((await writes.run()).measured).toEqual(rule('overwrites an input', 'input 0 has other values after the run'))
    const after = (values: readonly number[]): Partial<Task> => ({ inputsAfter: new Map([[0, t(values)]]) })
    const adding = (by: number) => (a: Tensor) => {
      const out = twice(a)
      noGrad(() => a.add_(by))
      return out
    }
    expect((await trialOf(adding(1), {}, after([2, 3])).run()).measured).toEqual(RIGHT)
    expect((await trialOf(adding(2), {}, after([2, 3])).run()).measured).toMatchObject({
      status: 'differs',
      rule: null,
      reason: 'what it writes to input 0',
    })
  })

  it('sees that a weight is overwritten, or not written as it should be, and gives each run the same', async () => {
    const weight = t([5])
    const adding = (by: number, changes: Partial<Task> = {}): Trial =>
      trialOf((a) => (noGrad(() => weight.add_(by)), twice(a)), { 'a.w': weight, still: t([1]) }, changes)
    const trial = adding(1)
    for (let i = 0; i < 2; i++) {
      expect((await trial.run()).measured).toEqual(rule('overwrites a weight', "'a.w' has other values after the run"))
      expect(weight.toArray()).toEqual([6])
    }
    trial.restore()
    expect(weight.toArray()).toEqual([5])
    const heldAfter = new Map([['a.w', t([6])]])
    const right = adding(1, { heldAfter })
    for (let i = 0; i < 2; i++) expect((await right.run()).measured).toEqual(RIGHT)
    right.restore()
    const wrong = adding(2, { heldAfter })
    expect((await wrong.run()).measured).toMatchObject({
      status: 'differs',
      error: expect.closeTo(1 / 7, 2) as number,
      reason: "what it writes to 'a.w'",
    })
    wrong.restore()
    // What a run that threw has left is put back too.
    const throws = trialOf(
      () => {
        noGrad(() => weight.add_(1))
        throw new RangeError('no')
      },
      { w: weight },
    )
    for (let i = 0; i < 2; i++) await throws.run()
    expect(weight.toArray()).toEqual([6])
    throws.restore()
    expect(weight.toArray()).toEqual([5])
    // Weights that no run has changed are not written.
    const still = trialOf(twice, { w: weight })
    await still.run()
    const version = weight.storage?.version
    await still.run()
    still.restore()
    expect(weight.storage?.version).toBe(version)
  })

  it('sees that an output is overwritten by the next run, and which', async () => {
    const buffer = t([0, 0])
    const reusing = trialOf((a) => [noGrad(() => buffer.copy_(a.mul(2)))])
    expect((await reusing.run()).measured).toEqual(RIGHT)
    expect(await reusing.run()).toMatchObject({
      measured: rule('overwrites an earlier output', 'a run changed what the run before had returned'),
      overwritten: 0,
    })
    const pair = taskOf(
      symbolicTrace((a: Tensor) => [torch.mul(a, 3), torch.mul(a, 2)]),
      [x],
      'float64',
    )
    const second = trialOf((a) => [a.mul(3), noGrad(() => buffer.copy_(a.mul(2)))], {}, pair)
    await second.run()
    expect((await second.run()).overwritten).toBe(1)
  })

  it('lets a backend return a constant, an input, a view of a weight, or the same tensor twice', async () => {
    const constant = t([2, 4])
    const always = trialOf(() => [constant])
    for (let i = 0; i < 3; i++) expect([(await always.run()).measured, constant.toArray()]).toEqual([RIGHT, [2, 4]])
    const same = taskOf(
      symbolicTrace((a: Tensor) => [a, a]),
      [x],
      'float64',
    )
    const passing = trialOf((a) => [a, a], {}, same)
    for (let i = 0; i < 3; i++) expect((await passing.run()).measured).toEqual(RIGHT)
    const weight = t([2, 4])
    const view = trialOf(() => [weight.view(-1)], { w: weight })
    for (let i = 0; i < 3; i++) expect([(await view.run()).measured, weight.toArray()]).toEqual([RIGHT, [2, 4]])
    // A constant that was written to is one no more.
    let calls = 0
    const writing = trialOf(() => {
      if (calls++ > 0) noGrad(() => constant.copy_(t([2, 4])))
      return [constant]
    })
    await writing.run()
    expect((await writing.run()).measured.rule).toBe('overwrites an earlier output')
  })
})

describe('a candidate', () => {
  /** A candidate whose runs say this, and how often it was compiled and run. */
  function candidate(
    run: (compiled: number, ran: number) => readonly Tensor[],
    isHere = true,
  ): { readonly one: Candidate; readonly counts: number[] } {
    const counts: number[] = []
    const one: Candidate = {
      ...{ name: 'c', registered: null, compiles: true, isHere },
      with: async (_gm, _inputs, use) => {
        const compiled = counts.push(0)
        return use({
          held: new Map(),
          run: () => {
            const ran = (counts[compiled - 1] = present(counts[compiled - 1], 'a count') + 1)
            return { outputs: run(compiled, ran), given: [] }
          },
        })
      },
    }
    return { one, counts }
  }
  const right = (): Tensor[] => [t([2, 4])]
  const wrong = (): Tensor[] => [t([2, 5])]

  it('is tried twice, oftener where runs differ, and not where it draws from elsewhere', async () => {
    const { one, counts } = candidate(right)
    expect([await tried(one, task(), 1e-4), counts]).toEqual([RIGHT, [2]])
    expect([(await tried(one, task(), 1e-4, 4)).status, counts]).toEqual(['ok', [2, 4]])
    const reason = 'it draws random numbers, and the backend has a generator of its own'
    const elsewhere = candidate(right, false)
    expect(await tried(elsewhere.one, { ...task(), isRandom: true }, 1e-4)).toEqual({ ...RIGHT, status: 'skipped', error: NaN, reason })
    expect(elsewhere.counts).toEqual([])
    expect((await tried(elsewhere.one, task(), 1e-4)).status).toBe('ok')
    expect((await tried(one, { ...task(), isRandom: true }, 1e-4)).status).toBe('ok')
    const error = new RangeError('no compiler')
    const failing: Candidate = { ...one, with: () => Promise.reject(error) }
    expect(await tried(failing, task(), 1e-4)).toEqual({
      ...RIGHT,
      status: 'failed',
      error: NaN,
      reason: 'RangeError: no compiler',
      rate: 1,
      thrown: error,
    })
  })

  it('that is wrong is compiled twice more: what does not come again is flaky', async () => {
    const confirm = async (first: Measured, run: (compiled: number, ran: number) => Tensor[]): Promise<readonly [unknown, number]> => {
      const { one, counts } = candidate(run)
      return [await confirmed(one, task(), 1e-4, first), counts.length]
    }
    for (const first of [RIGHT, { ...RIGHT, status: 'skipped' }, bad({ status: 'flaky' })] as const)
      expect(await confirm(first, wrong)).toEqual([first, 0])
    expect(await confirm(bad(), wrong)).toEqual([bad(), 2])
    const failed = bad({ status: 'failed' })
    expect(
      await confirm(bad(), () => {
        throw new RangeError('no')
      }),
    ).toEqual([bad(), 2])
    expect(
      await confirm(failed, () => {
        throw new RangeError('no')
      }),
    ).toEqual([failed, 2])
    const text = (count: string): object => ({ status: 'flaky', reason: `not right in ${count} runs with the same inputs` })
    expect(await confirm(bad(), right)).toEqual([expect.objectContaining({ ...text('1 of 3'), rate: 1 / 3 }), 2])
    expect(await confirm(bad(), (compiled) => (compiled === 1 ? wrong() : right()))).toEqual([expect.objectContaining({ ...text('2 of 3') }), 2])
    expect(await confirm(failed, wrong)).toEqual([failed, 2])
    // Each that is flaky counts as one right run and one wrong.
    const [mixed] = await confirm(bad({ error: 9 }), (compiled, ran) => (compiled === 1 && ran % 2 === 1 ? right() : wrong()))
    expect(mixed).toMatchObject({ ...text('3 of 4'), error: 9 })
  })
})
