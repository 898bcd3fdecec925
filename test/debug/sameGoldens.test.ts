// PyTorch's `same`, `bitwise_same` and `rmse` on recorded values. Where ours differ, it is listed with the reason.
import { describe, expect, it } from 'vitest'
import type { Tensor } from 'tensorfx'
import { bitwiseSame, rmse, same } from 'tensorfx/debug'
import { NotHere, casesOf, decoder, optionsOf } from './recorded.ts'
import type { Case } from './recorded.ts'

/** Our answers where they differ from the recorded ones, by reason. PyTorch's `raises` counts as an answer. */
const DISAGREEMENTS: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
  'a NaN or an infinity in all three hides every other element from PyTorch, and any element from a float64 NaN': {
    'inf in ref and res, fp64 finite, another element wrong': false,
    'inf in ref and res, fp64 finite, another element wrong, equal_nan': false,
    'nan in fp64 only, res differs, equal_nan': false,
    'nan beside a wrong element, same place in all three, equal_nan': false,
    'nan in another place of res, equal_nan': false,
    'inf in all three, another element wrong, equal_nan': false,
    'all nan in ref, anything in res, fp64 nan': false,
    'nan beside a wrong element, float64, equal_nan': false,
  },
  'one NaN of the reference widens the tolerance of all other elements to 0.04 in PyTorch': {
    'nan in ref only, fp64 agrees with res within 0.04': false,
    'nan in ref only, fp64 agrees with res within 0.04, equal_nan': false,
  },
  'shapes never broadcast, those of the float64 reference neither': {
    'shape mismatch that broadcasts, equal': false,
    'shape mismatch that broadcasts, [2,1] and [2]': false,
    'empty against [1]': false,
    'fp64_ref of another shape (broadcast)': false,
    'fp64_ref of another shape': false,
    'shape mismatch': false,
    'empty [0,3] against [0]': false,
  },
  'ignoreNonFp lets no float pass': { 'f32 off, no fp64_ref, ignore_non_fp': false },
  'elements without a float64 reference are compared without it': {
    'list, fp64_ref shorter: the rest is not compared': false,
    'list, fp64_ref empty: nothing is compared': false,
    'dict, fp64_ref lacks a key': true,
  },
  'other types, lengths and keys are a difference, not an error': {
    'float against string': false,
    'float against None': false,
    'tensor against None': false,
    'tensor against string': false,
    'int against tensor of two': false,
    'list against tensor': false,
    'dict keys differ': false,
    'dict against list': false,
    'set off': false,
    'set against list': false,
    'MaskedLMOutput, res lacks an attribute': false,
    'MaskedLMOutput against dict': false,
  },
  'all own fields of class instances are compared, of any class; one without fields may have private ones': {
    'MaskedLMOutput, res has more attributes': false,
    'Foo without attributes': false,
    'the same object of an unknown class is unsupported': true,
    'list with an unknown class': false,
  },
  'options reach the fields of class instances': {
    'MaskedLMOutput, force_max_multiplier is not handed on': true,
    'MaskedLMOutput, use_iou_for_bool is not handed on': true,
  },
  'JavaScript has one type of numbers, in double precision, and no bool among them; a list is a list; keys need no order': {
    'float against int': true,
    'float near 2^24': false,
    'int against bool': false,
    'list against ParameterList': true,
    'dict with keys of mixed types': true,
  },
}

/** What PyTorch answered: true, false, or that it raises. numpy's and tensors' booleans are booleans. */
function answerOf({ result, raises }: Case): boolean | string {
  if (raises !== undefined) return 'raises'
  if (typeof result === 'boolean') return result
  const value = (result as { readonly value?: boolean; readonly data?: readonly boolean[] } | null) ?? {}
  return value.value ?? value.data?.[0] ?? 'nothing'
}

const ours = new Map(Object.values(DISAGREEMENTS).flatMap((cases) => Object.entries(cases)))

function checkCase(one: Case, run: (decode: ReturnType<typeof decoder>) => boolean): void {
  const expected = ours.get(one.name) ?? answerOf(one)
  try {
    expect(run(decoder())).toBe(expected)
  } catch (error) {
    if (!(error instanceof NotHere)) throw error
  }
}

describe('same, as recorded', () => {
  it.each(casesOf('same').map((one) => [one.name, one] as const))('%s', (_name, one) => {
    const silent = { ...optionsOf(one.options), logError: () => undefined }
    checkCase(one, (decode) => same(decode(one.ref ?? null), decode(one.res ?? null), decode(one.fp64_ref ?? null), silent))
  })

  // (difference: nan-by-place) (difference: no-broadcasting-of-results) (difference: floats-count) (difference: structures-differ)
  // (difference: missing-references)
  it('every disagreement is with a recorded answer', () => {
    const recorded = new Map([...casesOf('same'), ...casesOf('same-more')].map((one) => [one.name, answerOf(one)]))
    for (const [name, answer] of ours) {
      expect([name, recorded.has(name)]).toEqual([name, true])
      expect([name, recorded.get(name)]).not.toEqual([name, answer])
    }
  })
})

describe('bitwiseSame and rmse, as recorded', () => {
  const cases = casesOf('same-more')
  it.each(cases.filter((one) => one.function === 'bitwise_same').map((one) => [one.name, one] as const))('%s', (_name, one) => {
    checkCase(one, (decode) =>
      bitwiseSame(decode(one.ref ?? null), decode(one.res ?? null), { ...optionsOf(one.options), logError: () => undefined }),
    )
  })

  it('rmse, in double precision and for integers too', () => {
    const found = cases.flatMap((one): (readonly [string, unknown])[] => {
      if (one.function !== 'rmse') return []
      const decode = decoder()
      try {
        return [[one.name, rmse(decode(one.ref ?? null) as Tensor, decode(one.res ?? null) as Tensor)]]
      } catch (error) {
        return [[one.name, error instanceof NotHere ? 'no complex numbers' : (error as Error).name]]
      }
    })
    expect(Object.fromEntries(found)).toEqual({
      'f64 against f32': 0.07071069497739416,
      // PyTorch squares in float16, which overflows.
      f16: 299,
      'bf16 f64': 0.1015625,
      // PyTorch refuses both.
      ints: Math.SQRT2,
      bool: 1,
      empty: NaN,
      broadcast: 'ArgumentError',
      inf: NaN,
      complex: 'no complex numbers',
    })
  })
})
