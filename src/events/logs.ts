// Logs: which artifacts are printed, from setLogs or the environment variable TENSORFX_LOGS. PyTorch's torch._logging.
import { ArgumentError } from '../errors/index.ts'
import { checkCount, checkString, environmentVariable, nearest, valueText } from '../protocol/index.ts'
import { LogState, artifacts } from './artifacts.ts'
import type { ArtifactName } from './artifacts.ts'
import { log } from './sink.ts'
import { onEvent } from './stream.ts'
import type { Remover } from './stream.ts'
import type { CompileEvent, EventKind } from './types.ts'

/** How much a component logs: everything, its steps, or failures only. */
export type LogVerbosity = 'debug' | 'info' | 'error'

/** The parts of compile that log as a whole. */
type Component = 'all' | 'dynamo' | 'aot' | 'inductor'

type Own = 'dynamo_start' | 'dynamo_debug' | 'dynamo_steps' | 'aot_steps' | 'inductor_steps' | 'failures'

/** Artifacts that are logged by name; those of the components have no names of their own. */
export type LogArtifact = Exclude<ArtifactName, Own>

/** What {@link setLogs} takes: artifacts to print, and components with how much they say. */
export type LogSettings = { readonly [K in LogArtifact]?: boolean } & { readonly [K in Component]?: LogVerbosity }

const dynamo = {
  error: ['failures'],
  info: ['failures', 'dynamo_start', 'dynamo_steps'],
  debug: [
    'failures',
    'dynamo_start',
    'dynamo_debug',
    'dynamo_steps',
    'graph_breaks',
    'recompiles',
    'guards',
    'graph_code',
    'graph_sizes',
    'trace',
    'trace_call',
  ],
} satisfies Record<LogVerbosity, readonly ArtifactName[]>
const aot = {
  error: ['failures'],
  info: ['failures', 'aot_steps'],
  debug: ['failures', 'aot_steps', 'aot_graphs', 'aot_joint_graph'],
} satisfies Record<LogVerbosity, readonly ArtifactName[]>
const inductor = {
  error: ['failures'],
  info: ['failures', 'inductor_steps'],
  debug: ['failures', 'inductor_steps', 'fusion', 'schedule', 'output_code', 'perf_hints'],
} satisfies Record<LogVerbosity, readonly ArtifactName[]>

/** What components print. */
const components: Readonly<Record<Component, Readonly<Record<LogVerbosity, readonly ArtifactName[]>>>> = {
  all: {
    error: ['failures'],
    info: [...dynamo.info, ...aot.info, ...inductor.info],
    debug: [...dynamo.debug, ...aot.debug, ...inductor.debug],
  },
  dynamo,
  aot,
  inductor,
}

/** The artifacts of components, and what their lines begin with. */
const ownLabels: Readonly<Record<Own, string>> = {
  dynamo_start: 'dynamo',
  dynamo_debug: 'dynamo',
  dynamo_steps: 'dynamo',
  aot_steps: 'aot',
  inductor_steps: 'inductor',
  failures: 'failures',
}
const labels: ReadonlyMap<string, string> = new Map(Object.entries(ownLabels))
const isArtifact = (name: string): name is LogArtifact => Object.hasOwn(artifacts, name) && !labels.has(name)
const isComponent = (name: string): name is Component => Object.hasOwn(components, name)
const names: readonly string[] = [...Object.keys(components), ...Object.keys(artifacts).filter(isArtifact)]

/** PyTorch's other names. */
const aliases: ReadonlyMap<string, string> = new Map([
  ['trace_source', 'trace'],
  ['recompiles_verbose', 'recompiles'],
])

const plain = (name: string): string => name.replaceAll('_', '').toLowerCase()

/** The name of an artifact or component; `graphBreaks` is `graph_breaks`. Throws ArgumentError for another one. */
function nameOf(where: string, given: string): LogArtifact | Component {
  const name = aliases.get(given) ?? names.find((known) => plain(known) === plain(given)) ?? given
  if (isArtifact(name) || isComponent(name)) return name
  const near = nearest(given, names)
  throw new ArgumentError(
    `${where}: there is no log '${given}'.${near === null ? '' : ` Did you mean '${near}'?`} Known are ${names.join(', ')}; components take '+' (debug) and '-' (errors only).`,
  )
}

let current: Remover | null = null
let isSet = false

/**
 * Chooses what compile logs, in place of what was logged before: artifacts (`graph_breaks`, `recompiles`, `guards`, `graph`, `graph_code`, `graph_sizes`, `trace`, `trace_call`, `aot_graphs`, `aot_joint_graph`, `fusion`,
 * `schedule`, `output_code`, `kernel_code`, `perf_hints`, `engines`: true or false) and components (`dynamo`, `aot`, `inductor`, `all`: `'debug'`, `'info'` or `'error'`). Names in camelCase work too. The environment variable
 * TENSORFX_LOGS=graph_breaks,+dynamo,-inductor does so from the start. Logs go to standard error, or to the sink of {@link setLogSink}. Throws ArgumentError for an unknown name. PyTorch's torch._logging.set_logs.
 *
 *     setLogs({ graph_breaks: true, recompiles: true, inductor: 'debug' })
 *     setLogs() // nothing
 */
export function setLogs(settings: LogSettings = {}): void {
  checkCount('setLogs', arguments, 1)
  if (typeof settings !== 'object' || settings === null || Array.isArray(settings))
    throw new ArgumentError(`setLogs: argument 'settings' must be an object such as { graph_breaks: true }, got ${valueText(settings)}.`)
  const chosen = new Set<ArtifactName>()
  for (const [given, value] of Object.entries(settings)) addTo(chosen, 'setLogs', given, value)
  printOnly(chosen)
}

function addTo(chosen: Set<ArtifactName>, where: string, given: string, value: unknown): void {
  const name = nameOf(where, given)
  if (isArtifact(name)) {
    if (typeof value !== 'boolean') throw new ArgumentError(`${where}: ${name} must be true or false, got ${valueText(value)}.`)
    if (value) chosen.add(name)
    else chosen.delete(name)
    return
  }
  if (value !== 'debug' && value !== 'info' && value !== 'error')
    throw new ArgumentError(`${where}: ${name} must be 'debug', 'info' or 'error', got ${valueText(value)}.`)
  for (const part of components[name][value]) chosen.add(part)
}

/** Logs what `graph_breaks,+dynamo,-inductor` chooses. Throws ArgumentError for an unknown name. */
export function setLogsFrom(text: string): void {
  checkString('setLogsFrom', 'text', text)
  printOnly(artifactsOf(text))
}

/** The artifacts that `graph_breaks,+dynamo,-inductor` chooses. Throws ArgumentError for an unknown name. */
export function artifactsOf(text: string): ReadonlySet<ArtifactName> {
  const chosen = new Set<ArtifactName>()
  for (const part of text.split(',').map((entry) => entry.trim())) {
    if (part === '') continue
    const sign = part.startsWith('+') || part.startsWith('-') ? part.slice(0, 1) : ''
    const name = nameOf(`TENSORFX_LOGS=${text}`, part.slice(sign.length))
    const verbosity = sign === '+' ? 'debug' : sign === '-' ? 'error' : 'info'
    addTo(chosen, 'TENSORFX_LOGS', name, isArtifact(name) ? sign !== '-' : verbosity)
  }
  return chosen
}

/** Logs what the environment asks for, unless the program has called {@link setLogs}. The composition root calls it. */
export function installLogs(): void {
  const text = environmentVariable('TENSORFX_LOGS')
  if (!isSet && text !== undefined) setLogsFrom(text)
}

function printOnly(chosen: ReadonlySet<ArtifactName>): void {
  isSet = true
  current?.()
  current = null
  if (chosen.size === 0) return
  const state = new LogState()
  // In the order of the table, whatever the order of the settings.
  const printers = Object.entries(artifacts).filter(([name]) => [...chosen].some((other) => other === name))
  const kinds = new Set<EventKind>(['recompile', ...printers.flatMap(([, { kinds: wanted }]) => wanted)])
  current = onEvent(
    (event) => {
      if (event.kind === 'recompile' && event.fn !== null) state.recompiles.set(event.fn, (state.recompiles.get(event.fn) ?? 0) + 1)
      for (const [name, printer] of printers) {
        const text = printer.print(event, state)
        if (text !== null) log.info(prefixed(text, event, name, state))
      }
    },
    { kinds: [...kinds] },
  )
}

/** Each line with the compile id and the artifact, as PyTorch does. */
function prefixed(text: string, { fn }: CompileEvent, name: string, state: LogState): string {
  const id = fn === null ? '' : `[${state.compileId(fn)}] `
  const prefix = `${id}[__${labels.get(name) ?? name}] `
  return text
    .trimEnd()
    .split('\n')
    .map((line) => prefix + line)
    .join('\n')
}
