// opcheck: whether an operator keeps the promises that graphs and compilers rely on. PyTorch's torch.library.opcheck.
import { ArgumentError, TensorfxError } from '../../errors/index.ts'
import { opOf } from '../../ops/index.ts'
import type { OpFunction } from '../../ops/index.ts'
import { checkOptions } from '../../protocol/index.ts'
import type { TargetFunction } from '../../protocol/index.ts'
import { testAutogradRegistration, testFakeTensor, testGradient, testSchema } from './eagerTests.ts'
import { testAotDispatch, testTracing } from './graphTests.ts'
import { Sample } from './sample.ts'
import type { Tolerance } from './sample.ts'

/** A test of an operator on one sample: what is wrong, or null. It may throw, too. */
type Test = (sample: Sample, tolerance: Tolerance) => string | null

const TESTS = {
  /** Arguments are written to and returned only as the schema says. */
  test_schema: testSchema,
  /** There is a backward for samples that require grad, and it returns gradients that fit. */
  test_autograd_registration: testAutogradRegistration,
  /** The fake function gives the shapes, strides and dtypes of forward. */
  test_faketensor: testFakeTensor,
  /** Gradients are those of finite differences. float64 samples are checked more strictly. */
  test_gradient: testGradient,
  /** symbolicTrace and makeFx record the operator; the graphs compute the same, also after saving and loading. */
  test_tracing: testTracing,
  /** compile gives the same results and gradients, with backends aot_eager and inductor. */
  test_aot_dispatch_static: testAotDispatch,
} satisfies Readonly<Record<string, Test>>

/** The name of a test. */
export type OpCheckTest = keyof typeof TESTS

/** The outcome of each test that ran. */
export type OpCheckReport = { readonly [Name in OpCheckTest]?: 'SUCCESS' | OpCheckError }

/** Options of `opcheck`. */
export interface OpCheckOptions {
  /** The tests to run. Default: all. PyTorch's test_utils. */
  readonly testUtils?: OpCheckTest | readonly OpCheckTest[]
  /** Whether a failure is thrown; otherwise the report has it. Default true. */
  readonly raiseException?: boolean
  /** Absolute tolerance of comparisons. Default: 1e-5 for float32, 1e-7 for float64. */
  readonly atol?: number
  /** Relative tolerance of comparisons. Default: 1.3e-6 for float32, 1e-7 for float64. */
  readonly rtol?: number
}

/**
 * What `opcheck` throws: an operator failed a test. `cause` is the error that the operator threw, if it threw one.
 *
 * Fix: compare what the operator does with what its schema, `fake` and `backward` say; the message names the test, the sample and the difference.
 */
export class OpCheckError extends TensorfxError {
  /** The test that failed. */
  readonly test: OpCheckTest
  /** The position of the sample on which it failed. */
  readonly sample: number

  constructor(op: string, test: OpCheckTest, sample: number, text: string, why: string, options: { readonly cause?: unknown }) {
    super('TFX_OPCHECK', `opcheck(${op}, ...): ${test} failed on sample ${sample} (${text}): ${why}`, options)
    this.test = test
    this.sample = sample
  }
}

const isTest = (name: string): name is OpCheckTest => Object.hasOwn(TESTS, name)
const testNames: readonly OpCheckTest[] = Object.keys(TESTS).filter(isTest)

function chosenTests(testUtils: OpCheckOptions['testUtils']): readonly OpCheckTest[] {
  const chosen: readonly string[] = testUtils === undefined ? testNames : typeof testUtils === 'string' ? [testUtils] : testUtils
  return chosen.map((name) => {
    if (isTest(name)) return name
    throw new ArgumentError(`opcheck: there is no test '${name}' for testUtils; the tests are ${testNames.join(', ')}.`)
  })
}

/**
 * Tests whether an operator does what its declaration says, on samples: lists of arguments, as it is called. The samples are not changed. Returns 'SUCCESS' for each
 * test. PyTorch's torch.library.opcheck, which takes one sample.
 *
 * @throws OpCheckError for the first failure: it names the test, the sample and what differed. With `raiseException: false` the report has the errors instead.
 * @throws ArgumentError if `op` is not an operator, there are no samples, or an option is unknown.
 * @example
 * const x = torch.randn([3], { dtype: 'float64' }).requiresGrad_()
 * opcheck(scaled, [[x, 2], [torch.ones([2, 3]), 0.5]])
 */
export function opcheck<F extends TargetFunction>(op: OpFunction<F>, samples: readonly Parameters<F>[], options: OpCheckOptions = {}): OpCheckReport {
  checkOptions('opcheck', options, { testUtils: true, raiseException: 'boolean', atol: 'number', rtol: 'number' })
  const def = opOf(op)
  if (def === undefined)
    throw new ArgumentError('opcheck: the first argument must be an operator, such as torch.library.customOp returns; got another function or value.')
  if (!Array.isArray(samples) || samples.length === 0 || !samples.every((sample) => Array.isArray(sample)))
    throw new ArgumentError('opcheck: the samples must be a list of lists of arguments, such as [[x, 2], [y, 3]], with at least one.')
  const tolerance: Tolerance = { atol: options.atol ?? null, rtol: options.rtol ?? null }
  const report: { [Name in OpCheckTest]?: 'SUCCESS' | OpCheckError } = {}
  for (const test of chosenTests(options.testUtils)) {
    const failure = failureOf(
      test,
      samples.map((sample) => new Sample(def, sample)),
      tolerance,
    )
    if (failure !== null && options.raiseException !== false) throw failure
    report[test] = failure ?? 'SUCCESS'
  }
  return report
}

/** The first failure of a test; null if it passes on all samples. */
function failureOf(name: OpCheckTest, samples: readonly Sample[], tolerance: Tolerance): OpCheckError | null {
  const test: Test = TESTS[name]
  for (const [i, sample] of samples.entries()) {
    const fail = (why: string, cause?: unknown): OpCheckError => new OpCheckError(sample.op.qualname, name, i, sample.text, why, { cause })
    try {
      const why = test(sample, tolerance)
      if (why !== null) return fail(why)
    } catch (error) {
      return fail(error instanceof Error ? `${error.name}: ${error.message}` : String(error), error)
    }
  }
  return null
}
