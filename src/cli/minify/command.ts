// `tensorfx minify`: the smallest part of a saved graph for which a command still fails.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CONCRETE_VALUE, operatorsOf } from '../../debug/minify/subgraph.ts'
import { minifier, MinifierError } from '../../debug/minify/minifier.ts'
import { ArgumentError } from '../../errors/index.ts'
import { Graph, GraphModule } from '../../fx/index.ts'
import { installCompile } from '../../install/compile.ts'
import { Tensor } from '../../tensor/index.ts'
import { graphToJson } from '../../fx/text/json.ts'
import { numberOf } from '../line.ts'
import type { OnProgress } from '../../protocol/index.ts'
import type { Line, Output, Result } from '../line.ts'
import { endingText, isFailure, runCheck } from './check.ts'
import type { Ending } from './check.ts'
import { copyIn, formatOf, readInputs, writeInputs } from '../savedGraphs.ts'
import type { Format, Saved } from '../savedGraphs.ts'
import { reduceStructure } from './structure.ts'

/** Runs `tensorfx minify`. */
export async function runMinify(line: Line, output: Output): Promise<Result> {
  installCompile()
  try {
    return await minify(line, output)
  } catch (error) {
    if (error instanceof MinifierError || error instanceof NoFailure)
      return { text: `tensorfx minify: ${error.message}`, code: 1, data: { error: error.message } }
    throw error
  }
}

/** The command does not tell a graph that fails from one that does not. */
class NoFailure extends Error {}

async function minify(line: Line, { note, progress }: Output): Promise<Result> {
  const { operands, options } = line
  const [model, second] = operands
  if (model === undefined || second !== undefined) throw new ArgumentError(`expected one saved graph, got ${operands.length}.`)
  const command = options.get('--run')
  if (command === undefined) throw new ArgumentError('--run is missing: the command that fails.')
  const format = formatOf(model)
  const saved = format.read(model)
  const file = options.get('--inputs')
  const inputs = file === undefined ? saved.inputs : readInputs(file)
  const count = saved.graph.findNodes({ op: 'placeholder' }).length
  if (inputs !== null && inputs.length !== count) throw new ArgumentError(`the graph has ${count} inputs, and there are ${inputs.length}.`)
  const exitCode = numberOf(line, '--exit-code') ?? null
  const out = options.get('--out') ?? withMin(model, format)
  const isQuiet = options.has('--quiet')
  const say = isQuiet ? (): void => {} : note
  const limits = { seconds: numberOf(line, '--timeout') ?? 60, runs: numberOf(line, '--max-runs') ?? 1000, progress: isQuiet ? undefined : progress }
  const work = mkdtempSync(join(tmpdir(), 'tensorfx-minify-'))
  try {
    const checks = new Checks(format, work, command, exitCode, limits)
    await control(checks, { ...saved, inputs })
    const small = await reduced(checks, { ...saved, inputs }, say)
    write(format, out, small)
    const written = small.inputs === null || format.extension === '' ? null : `${out}.inputs.safetensors`
    if (written !== null) writeInputs(written, tensorsOf(small))
    const nodes = (graph: Graph): string => `${operatorsOf(graph).length} operators`
    return {
      text: [
        `${nodes(saved.graph)} -> ${nodes(small.graph)}, in ${checks.runs} runs of the command${checks.isSpent ? ' (--max-runs was reached)' : ''}`,
        ...[...small.graph.nodes].map((node) => `  ${node.formatNode() ?? node.name}`),
        `Wrote ${out}${written === null ? '' : ` and ${written}`}`,
      ].join('\n'),
      code: 0,
      data: {
        before: operatorsOf(saved.graph).length,
        after: operatorsOf(small.graph).length,
        runs: checks.runs,
        isSpent: checks.isSpent,
        graph: graphToJson(small.graph),
        out,
        inputs: written,
      },
    }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** The path of the result: `model.min.json` for `model.json`. */
const withMin = (model: string, { extension }: Format): string =>
  `${model.replace(/[\\/]+$/, '').slice(0, extension === '' ? undefined : -extension.length)}.min${extension}`

const tensorsOf = ({ inputs }: Saved): readonly Tensor[] => (inputs ?? []).filter((input) => input instanceof Tensor)

/** Writes a graph as other programs get it: without the values that the search has noted. */
function write(format: Format, path: string, saved: Saved): void {
  const graph = saved.graph.deepCopy()
  for (const node of graph.nodes) delete node.meta[CONCRETE_VALUE]
  format.write(path, { ...saved, graph })
}

/** How long and how often the command runs, and what is told of each run. */
interface Limits {
  readonly seconds: number
  readonly runs: number
  readonly progress: OnProgress | undefined
}

/** Runs the command on candidates, and counts. */
class Checks {
  runs = 0
  readonly #format: Format
  readonly #work: string
  readonly #command: string
  readonly #exitCode: number | null
  readonly #limits: Limits

  constructor(format: Format, work: string, command: string, exitCode: number | null, limits: Limits) {
    this.#format = format
    this.#work = work
    this.#command = command
    this.#exitCode = exitCode
    this.#limits = limits
  }

  get isSpent(): boolean {
    return this.runs >= this.#limits.runs
  }

  /** Runs the command, whatever the limit says. */
  async run(saved: Saved): Promise<{ readonly ending: Ending; readonly fails: boolean }> {
    this.runs++
    this.#limits.progress?.({ task: 'minify', done: this.runs, total: null, text: `a graph of ${operatorsOf(saved.graph).length} operators` })
    const candidate = copyIn(this.#work, this.#format)
    rmSync(candidate, { recursive: true, force: true })
    write(this.#format, candidate, saved)
    const inputs = saved.inputs === null ? null : join(this.#format.extension === '' ? candidate : this.#work, 'inputs.safetensors')
    if (inputs !== null && this.#format.extension !== '') writeInputs(inputs, tensorsOf(saved))
    const ending = await runCheck(this.#command, candidate, inputs, this.#limits.seconds)
    return { ending, fails: isFailure(ending, this.#exitCode) }
  }

  /** Whether a candidate fails. Beyond the limit, and if it is not a graph, it does not. */
  async fails(saved: Saved): Promise<boolean> {
    if (this.isSpent) return false
    saved.graph.lint()
    return (await this.run(saved)).fails
  }
}

/** The original has to fail, and a graph that computes nothing must not. */
async function control(checks: Checks, saved: Saved): Promise<void> {
  const original = await checks.run(saved)
  if (!original.fails)
    throw new NoFailure(
      `the command does not fail on the graph itself: ${endingText(original.ending)}.${original.ending.timedOut ? ' Give it more time (--timeout), or let it end by itself and exit with another code than 0.' : ' It has to exit with another code than 0 while the failure is there.'}`,
    )
  const graph = new Graph()
  const input = saved.inputs?.[0]
  graph.output(graph.placeholder('x'))
  const identity = await checks.run({
    graph,
    root: saved.root === null ? null : new GraphModule({}, graph),
    inputs: saved.inputs === null ? null : [input ?? Tensor.empty([1], 'float32')],
  })
  if (identity.fails)
    throw new NoFailure(
      `the command fails on anything: also on a graph that returns its input (${endingText(identity.ending)}). It has to succeed where the failure is not; try it on a graph that is right.`,
    )
}

async function reduced(checks: Checks, saved: Saved, print: (line: string) => void): Promise<Saved> {
  const { root, inputs } = saved
  if (inputs === null) return { ...saved, graph: await reduceStructure(saved.graph, (graph) => checks.fails({ graph, root, inputs }), print) }
  const gm = root === null ? new GraphModule({}, saved.graph.deepCopy()) : root
  const fails = async (candidate: GraphModule, values: readonly unknown[]): Promise<boolean> =>
    checks.fails({ graph: candidate.graph, root: root === null ? null : candidate, inputs: values })
  const small = await minifier(gm, inputs, fails, { shrinkValues: true, skipSanity: true, finalRuns: 1, finalCheck: async () => true, print })
  return { graph: small.gm.graph, root: root === null ? null : small.gm, inputs: small.inputs }
}
