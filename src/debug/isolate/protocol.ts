// The messages to and from an isolated process or worker.
import { GraphModule } from '../../fx/index.ts'
import { graphToJson } from '../../fx/text/json.ts'
import { graphFromJson } from '../../fx/text/readJson.ts'
import type { GraphJson } from '../../fx/text/json.ts'
import { messageOf, present } from '../../errors/index.ts'
import { hostProcess, isObject, remembered } from '../../protocol/index.ts'
import { configDifferences, withConfig } from '../../config.ts'
import { findBackend } from '../../dynamo/index.ts'
import type { Config } from '../../config.ts'
import { importBackend, isModuleBackend } from '../script/backendModule.ts'
import type { Calls } from '../runs/history.ts'
import { OUTCOMES, checkFailureSpec, judgeSettled } from '../judge/judge.ts'
import type { FailureSpec, Outcome } from '../judge/judge.ts'
import { checkPlain, fromPlain, toPlain } from '../files/plainValues.ts'
import type { PlainValue } from '../files/plainValues.ts'

export interface Query {
  readonly id: number
  readonly graph: GraphJson
  /** Tensors that the graph reads by get_attr. */
  readonly attributes: readonly (readonly [string, PlainValue])[]
  /** The inputs of each call, oldest first, by number; the data of a number is sent with the first query that uses it. */
  readonly calls: readonly (readonly number[])[]
  readonly data: readonly (readonly [number, PlainValue])[]
  readonly spec: FailureSpec
  /** Modules to import first: they register the backend and custom functions. */
  readonly imports: readonly string[]
  /** Settings that differ from the defaults: tolerances, and what else decides about a candidate. */
  readonly config: Partial<Config>
}

export interface Answer {
  readonly id: number
  readonly outcome: Outcome
  /** The processor time that judging took, where the helper knows it. */
  readonly cpuMs?: number
}

/** What a helper says before it answers. */
export interface Progress {
  /** The query whose modules are imported: what follows is the candidate's own time. */
  readonly imported?: number
  /** The processor time that the helper has used since it started. */
  readonly cpuMs?: number
}

/** A message that names a query. The rest of it is not checked. */
interface AnswerLike {
  readonly id: number
  readonly outcome?: unknown
  readonly cpuMs?: unknown
}

/** Whether a message from a helper, which may be anything, answers a query. */
export function isAnswerTo(query: Query, message: unknown): message is AnswerLike {
  return isObject(message) && Reflect.get(message, 'id') === query.id
}

/** The outcome in an answer; null if it is none. */
export function outcomeOf({ outcome }: AnswerLike): Outcome | null {
  if (!isObject(outcome)) return null
  const status = OUTCOMES.find((known) => known === Reflect.get(outcome, 'status'))
  const message: unknown = Reflect.get(outcome, 'message')
  const signature: unknown = Reflect.get(outcome, 'signature')
  if (status === undefined || typeof message !== 'string') return null
  return typeof signature === 'string' ? { status, message, signature } : { status, message }
}

/** What a message, which may be anything, says about a helper's progress; null if it says nothing. */
export function progressOf(message: unknown): Progress | null {
  if (!isObject(message) || 'id' in message) return null
  const imported: unknown = Reflect.get(message, 'imported')
  const cpuMs: unknown = Reflect.get(message, 'cpuMs')
  const progress = { ...(typeof imported === 'number' ? { imported } : {}), ...(typeof cpuMs === 'number' ? { cpuMs } : {}) }
  return Object.keys(progress).length === 0 ? null : progress
}

/** Encodes queries for one isolated process, which keeps the inputs that it has got. */
export class QueryEncoder {
  readonly #sent = new Map<unknown, number>()
  #next = 0

  encode(gm: GraphModule, calls: Calls, spec: FailureSpec, imports: readonly string[]): Query {
    const data: [number, PlainValue][] = []
    const idOf = (input: unknown, i: number): number => {
      const known = this.#sent.get(input)
      if (known !== undefined) return known
      const id = this.#sent.size
      this.#sent.set(input, id)
      data.push([id, toPlain(input, `#${i}`)])
      return id
    }
    const attributes = new Map<string, PlainValue>()
    for (const { target } of gm.graph.findNodes({ op: 'get_attr' })) attributes.set(target, toPlain(gm.attribute(target), target))
    return {
      id: this.#next++,
      graph: graphToJson(gm.graph),
      attributes: [...attributes],
      calls: calls.map((inputs) => inputs.map(idOf)),
      data,
      spec,
      imports,
      config: configDifferences(),
    }
  }
}

/** Imports a module. Where the backend is there it may be missing: a worker's script has imported what a page cannot find by its name, such as `tensorfx/webgpu`. */
async function importUnless(isThere: boolean, url: string): Promise<void> {
  try {
    await import(/* @vite-ignore */ url)
  } catch (error) {
    if (!isThere) throw error
  }
}

/** The answering side: decodes, judges, answers. */
export class QueryServer {
  readonly #inputs = new Map<number, PlainValue>()
  readonly #report: (progress: Progress) => void
  readonly #cpuMs: () => number | null

  /** `report` sends what the helper says before it answers, and `cpuMs` is the processor time that it has used; null: it does not know. */
  constructor(report: (progress: Progress) => void = () => {}, cpuMs: () => number | null = () => null) {
    this.#report = report
    this.#cpuMs = cpuMs
  }

  async answer(query: Query): Promise<Answer> {
    for (const [id, plain] of query.data) this.#inputs.set(id, plain)
    let began: number | null = null
    const outcome = await this.#judge(query, () => {
      began = this.#cpuMs()
      this.#report({ imported: query.id, ...(began === null ? {} : { cpuMs: began }) })
    })
    const ended = this.#cpuMs()
    return { id: query.id, outcome, ...(began === null || ended === null ? {} : { cpuMs: ended - began }) }
  }

  async #judge(query: Query, imported: () => void): Promise<Outcome> {
    try {
      const isThere = hostProcess() === undefined && findBackend(query.spec.backend) !== null
      for (const url of query.imports) await importUnless(isThere, url)
      if (isModuleBackend(query.spec.backend)) await importBackend(query.spec.backend)
      imported()
      const root = Object.fromEntries(query.attributes.map(([path, plain]): [string, unknown] => [path, fromPlain(plain)]))
      const gm = new GraphModule(root, graphFromJson(query.graph, { trust: 'code' }))
      // What is one tensor in several calls stays one.
      const values = new Map<number, unknown>()
      const valueOf = (id: number): unknown => remembered(values, id, () => fromPlain(present(this.#inputs.get(id), `input ${id}`)))
      const calls = query.calls.map((ids) => ids.map(valueOf))
      return await withConfig(query.config, () => judgeSettled(gm, calls.at(-1) ?? [], checkFailureSpec(query.spec), undefined, calls.slice(0, -1)))
    } catch (error) {
      return { status: 'unrelated', message: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }
    }
  }
}

/** Why a graph cannot be judged elsewhere; null if it can: it only calls named functions, and its inputs are tensors or numbers. */
export function whyNotShippable(gm: GraphModule, inputs: readonly unknown[]): string | null {
  if (gm.graph.findNodes({ op: 'call_module' }).length > 0) return 'the graph calls modules'
  try {
    inputs.forEach((input, i) => checkPlain(input, `#${i}`))
    graphToJson(gm.graph)
  } catch (error) {
    return messageOf(error)
  }
  return null
}
