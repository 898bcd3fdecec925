// Whether guards imply what was asked; PyTorch's experimental.validator. Verdicts are PyTorch's, by Z3 and by the search that needs no package.
import { describe, expect, it } from 'vitest'
import {
  BisectValidationException,
  RecordingShapeEnv,
  ShapeEnv,
  SymBool,
  SymFloat,
  SymInt,
  TranslationValidator,
  ValidationException,
  bisect,
  replayShapeEnvEvents,
  validateShapeEnv,
} from 'tensorfx/fx/experimental'
import { hasZ3 } from 'tensorfx/fx/experimental/migrateGradualTypes'
import type { SolverOptions } from 'tensorfx/fx/experimental/migrateGradualTypes'
import { checkedFacts, parseExpr, symbol } from '../../../src/symbols/index.ts'
import type { Expr, ShapeGuard, SymbolExpr } from '../../../src/symbols/index.ts'
import { read, readGolden } from '../../symbols/golden.ts'
import { describeGolden, resultOf } from './golden.ts'

const SOLVERS: readonly SolverOptions[] = [{ solver: 'search' }, ...((await hasZ3()) ? [{ solver: 'z3' } as const] : [])]

/** a and b as positive sizes, p likewise. */
const positive = (name: string): SymbolExpr => symbol(name, { positive: true })
const any = (name: string): SymbolExpr => symbol(name, {})
/** Python's text of a condition as this package prints it. */
const spelled = (source: string): string =>
  source
    .replace(/sym_max\((\w+),(\w+)\)/, 'Max($1, $2)')
    .replace(/([\w+*()%/, ]+)==([\w+*()%/ ]+)/, 'Eq($1, $2)')
    .replace(/([\w+*()%/ ]+)!=([\w+*()%/ ]+)/, 'Ne($1, $2)')
    .replace(/(\w+)%(\w+)/, 'Mod($1, $2)')
const condition = (source: string, named = positive): Expr => parseExpr(spelled(source), named)

const listIn = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : [])

/** What validation says: null if it found nothing against the targets, or its error. */
async function verdict(validator: TranslationValidator, options: SolverOptions): Promise<ValidationException | string> {
  try {
    return await validator.validate(options)
  } catch (error) {
    if (error instanceof ValidationException) return error
    throw error
  }
}

// PyTorch prints what Z3 makes of a formula, without the casts in it (`a//2` is `(* 1/2 s0)`): another text here (difference: validator-text).
describe('what is translated', () => {
  const cases = readGolden('validator').filter(({ kind }) => kind === 'translate')

  it('are all recorded expressions', () => {
    expect(cases).toHaveLength(24)
  })

  it.each(cases.map((golden) => [String(golden['source']), golden] as const))('%s is PyTorch’s expression, and implies itself', async (_, golden) => {
    const env = new ShapeEnv({ duckShape: false })
    const names = new Map(['a', 'b'].map((name, i) => [name, env.createSymInt(6 - 2 * i, 'dynamic')]))
    const value = read(golden['expr'] ?? null, names)
    if (!(value instanceof SymBool || value instanceof SymInt || value instanceof SymFloat)) throw new Error('not symbolic')
    // PyTorch's translation knows neither abs nor piecewise expressions.
    if (golden['error'] === undefined) expect(value.toString()).toBe(golden['expression'])
    if (!(value instanceof SymBool)) return
    for (const options of SOLVERS) {
      const validator = new TranslationValidator()
      for (const known of env.values.keys()) validator.addVar(known)
      validator.addSourceExpr(value.expr)
      validator.addTargetExpr(value.expr)
      // The search may say that it cannot prove it.
      expect(options.solver === 'search' ? ['proved', 'unknown'] : ['proved']).toContain(await verdict(validator, options))
    }
  })
})

describe('verdicts are PyTorch’s', () => {
  const cases = readGolden('validator').filter(({ kind }) => kind === 'validate')
  it('of all recorded questions', () => {
    expect(cases).toHaveLength(15)
  })
  for (const { sources, targets, assertions, verdict: theirs } of cases) {
    for (const options of SOLVERS) {
      it(`${listIn(targets).join()} for ${listIn(sources).join()} with ${listIn(assertions).join()} by ${options.solver ?? ''}`, async () => {
        const validator = new TranslationValidator()
        for (const name of ['a', 'b']) validator.addVar(positive(name))
        for (const source of listIn(sources)) validator.addSourceExpr(condition(source))
        for (const target of listIn(targets)) validator.addTargetExpr(condition(target))
        for (const assertion of listIn(assertions)) validator.addAssertion(condition(assertion))
        const found = await verdict(validator, options)
        // A search proves less than Z3, and says so.
        if (theirs === null) expect(options.solver === 'z3' ? ['proved'] : ['proved', 'unknown']).toContain(found)
        else {
          expect(found).toBeInstanceOf(ValidationException)
          if (!(found instanceof ValidationException)) return
          // The model is a judge of its own: targets hold for it, and one of the sources does not.
          const holds = (source: string): boolean => holdsAt(condition(source), found.model)
          expect([...listIn(targets), ...listIn(assertions)].every(holds)).toBe(true)
          expect(listIn(sources).every(holds)).toBe(false)
        }
      })
    }
  }
})

function holdsAt(expr: Expr, model: ReadonlyMap<string, number>): boolean {
  return new ShapeEnv().valueAt(expr, new Map([...model].map(([name, value]) => [positive(name), value]))) === 1
}

const A = any('a')
const B = any('b')
const validatorOf = (sources: readonly string[], targets: readonly string[], assertions: readonly string[] = []): TranslationValidator => {
  const validator = new TranslationValidator()
  validator.addVar(A)
  validator.addVar(B)
  for (const source of sources) validator.addSourceExpr(condition(source, any))
  for (const target of targets) validator.addTargetExpr(condition(target, any))
  for (const assertion of assertions) validator.addAssertion(condition(assertion, any))
  return validator
}
const search: SolverOptions = { solver: 'search' }
const errorOf = async (validator: TranslationValidator): Promise<string> => {
  const found = await verdict(validator, search)
  return found instanceof ValidationException ? found.message : `no error: ${found}`
}

const ports: Readonly<Record<string, (golden: { readonly result: unknown }) => Promise<void> | void>> = {
  sound_targets: async (golden) => {
    expect(golden.result).toBe(null)
    expect(await verdict(validatorOf(['a > 3'], ['a > 5']), search)).toBe('proved')
  },
  'unsound_targets (difference: validator-text)': async (golden) => {
    const theirs = (golden.result as { error: string }).error
    const ours = await errorOf(validatorOf(['a > 5'], ['a > 3']))
    const sections = (text: string): string[] => [...text.matchAll(/^(\w[\w ]*):/gm)].map(([, name = '']) => name)
    expect(sections(ours)).toEqual(sections(theirs))
    expect(ours).toContain('Failed Source Expressions:\n  ==> 5 < a')
    expect(ours).toContain('Target Expressions:\n  ==> 3 < a')
  },
  nothing_to_prove: async (golden) => {
    expect(resultOf<null[]>(golden as never)).toEqual([null, null])
    expect(await verdict(new TranslationValidator(), search)).toBe('proved')
    expect(await verdict(validatorOf(['a > 5'], []), search)).toBe('proved')
  },
  assertions_restrict: async () => {
    expect(await verdict(validatorOf(['a > 5'], ['a > 3'], ['a > 10']), search)).toBe('proved')
    expect(await errorOf(validatorOf(['a > 5'], ['a > 3'], ['a > 4']))).toContain('Assertions:\n  ==> 4 < a')
  },
  positive_symbols: async () => {
    const validator = new TranslationValidator()
    const p = positive('p')
    validator.addVar(p)
    validator.addSourceExpr(condition('p >= 1'))
    validator.addTargetExpr(condition('p <= 100'))
    expect(await verdict(validator, search)).toBe('proved')
  },
  unknown_symbol_and_non_boolean: (golden) => {
    const [unknown, , boolean] = (golden.result as { error: string }[]).map(({ error }) => error)
    const validator = new TranslationValidator()
    expect(() => validator.addTargetExpr(condition('a > 3', any))).toThrow(unknown)
    validator.addVar(A)
    expect(boolean).toContain('expected boolean expression')
    expect(() => validator.addTargetExpr(parseExpr('a + 1', any))).toThrow('expected boolean expression. Got: a + 1')
    expect(() => validator.addVar(symbol('f', { integer: false }))).toThrow('unsupported type for Z3 variable')
  },
  'printing_of_z3 (difference: validator-text)': async () => {
    const message = await errorOf(validatorOf(['a*b > 7', 'Max(a, b) > 2'], ['a + b > 3', 'a > 0', 'b > 0']))
    expect(message).toContain('==> 3 < a + b')
    expect(message).toContain('==> 7 < a*b')
  },
  'switches (difference: validator-text)': async () => {
    // What PyTorch switches on for every trace is a call here.
    expect(await validateShapeEnv(new ShapeEnv(), search)).toBe('proved')
  },
  whole_environment_is_validated: async () => {
    const env = new ShapeEnv()
    const { sizes } = env.createSymbolicLayout([3, 4], [4, 1], { dims: ['dynamic', 'dynamic'] })
    const [rows, columns] = sizes
    if (!(rows instanceof SymInt && columns instanceof SymInt)) throw new Error('numbers')
    rows.mul(2).gt(5).toBool()
    columns.remainder(2).eq(0).toBool()
    rows.add(1).eq(columns).toBool()
    for (const options of SOLVERS)
      expect(options.solver === 'z3' ? ['proved'] : ['proved', 'unknown']).toContain(await validateShapeEnv(env, options))
  },
  bisection_finds_the_wrong_step: async (golden) => {
    expect(golden.result).toContain('torch.fx.experimental.validator.BisectValidationException')
    const env = new RecordingShapeEnv()
    const [a, b] = [env.createSymInt(3, 'dynamic'), env.createSymInt(4, 'dynamic')]
    if (!(a instanceof SymInt && b instanceof SymInt)) throw new Error('numbers')
    a.gt(2).toBool()
    b.gt(3).toBool()
    a.lt(b).toBool()
    a.add(b).lt(9).toBool()
    await expect(bisect(env)).resolves.toBeUndefined()
    // An environment that loses one guard: it is not compared with other inputs.
    const losing = async (of: ShapeEnv): Promise<unknown> => validateShapeEnv(withoutCheck(of, 'Lt'), search)
    await expect(bisect(env, losing)).rejects.toThrow(BisectValidationException)
    await expect(bisect(env, losing)).rejects.toThrow('translation validation failed when evaluating: s0 < s1\n')
  },
}
describeGolden('validator', ports as Readonly<Record<string, () => void>>)

/** The environment, which takes comparisons of two sizes of this kind for implied. */
function withoutCheck(env: ShapeEnv, op: Expr['op']): ShapeEnv {
  const { isImpliedByRanges } = env
  env.isImpliedByRanges = (guard: ShapeGuard) =>
    (guard.expr.op === op && guard.expr.args.every((arg) => arg.op === 'symbol')) || isImpliedByRanges.call(env, guard)
  return env
}

it('what is compared with other inputs says all that the environment was asked, for drawn questions', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    let state = seed
    const draw = (below: number): number => (state = (state * 48271) % 2147483647) % below
    const env = new RecordingShapeEnv()
    const sizes = [6, 4, 9].map((value) => env.createSymInt(value, 'dynamic')).filter((size) => size instanceof SymInt)
    for (let i = 0; i < 4; i++) {
      const [x, y] = [sizes[draw(3)], sizes[draw(3)]]
      if (x === undefined || y === undefined) continue
      const left = draw(2) === 0 ? x : x.add(draw(4))
      const question = [() => left.gt(y), () => left.eq(y), () => left.le(draw(12)), () => x.remainder(2 + draw(3)).eq(0)][draw(4)]
      question?.().toBool()
    }
    const found = await validateShapeEnv(replayShapeEnvEvents(env.events), search).catch((error: unknown) => String(error))
    expect(['proved', 'unknown'], `seed ${seed}: ${String(found)}`).toContain(found)
    expect(checkedFacts(env).every((fact) => env.hintOf(fact) === true)).toBe(true)
  }
})
