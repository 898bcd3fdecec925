// What can be logged: artifacts by PyTorch's names, each a way to print events. PyTorch's words are kept where it has some.
import { sourceLine } from '../provenance/index.ts'
import type { Frame } from '../provenance/index.ts'
import type { CompileEvent, EventKind, GraphEvent } from './types.ts'

/** What printing remembers of earlier events. */
export class LogState {
  /** Lines of the program where graph breaks were printed. */
  readonly breaks = new Set<string>()
  /** How often each compiled function was recorded anew. */
  readonly recompiles = new Map<number, number>()
  /** The calls that have begun: their names and lines, until something of them is recorded. */
  readonly begun = new Map<number, string>()
  /** The line of the operator that was recorded last. */
  lastLine = ''

  /** PyTorch's compile id: the function, and how often it was recorded before. */
  compileId(fn: number): string {
    return `${fn}/${this.recompiles.get(fn) ?? 0}`
  }
}

export interface Artifact {
  readonly kinds: readonly EventKind[]
  /** The text for an event; null for none. */
  print(event: CompileEvent, state: LogState): string | null
}

/** An artifact that prints events of some kinds. */
function artifact<K extends EventKind>(kinds: readonly K[], print: (event: CompileEvent<K>, state: LogState) => string | null): Artifact {
  const isMine = (event: CompileEvent): event is CompileEvent<K> => kinds.some((kind) => kind === event.kind)
  return { kinds, print: (event, state) => (isMine(event) ? print(event, state) : null) }
}

const at = (frame: Frame | null | undefined): string => (frame === null || frame === undefined ? '<unknown>' : `${frame.file}:${frame.line}`)

/** `  File "model.ts", line 3, in forward` and the line's source. */
export function traceback(stack: readonly Frame[]): string {
  return stack
    .map((frame) => {
      const code = sourceLine(frame)
      return `  File "${frame.file}", line ${frame.line}, in ${frame.fn}\n${code === null ? '' : `    ${code.trim()}\n`}`
    })
    .join('')
}

const indented = (text: string): string =>
  text
    .split('\n')
    .map((line) => ` ${line}`)
    .join('\n')

const traced = (title: string, text: string): string => `TRACED GRAPH\n ===== ${title} =====\n${indented(text)}`

/** The sizes in a spec: `(2, 3)` of `float32[2, 3]`. */
const sizesIn = (spec: string): string => spec.replaceAll(/\w+\[([^\]]*)\]/g, '($1)')

const ofCaptured = (print: (event: CompileEvent<'graph'>) => string): Artifact =>
  artifact(['graph'], (event) => (event.role === 'captured' ? print(event) : null))

/** PyTorch's GraphCompileReason. */
const compileReason = ({ reason, stack }: GraphEvent): string => {
  const frames = stack.map(({ file, line, fn }) => `<FrameSummary file ${file}, line ${line} in ${fn}>`).join(', ')
  return `GraphCompileReason(reason='${reason}', user_stack=[${frames}], graph_break=${reason === 'return' ? 'False' : 'True'})`
}

/** The artifacts. */
export const artifacts = {
  /** The first step of dynamo, told when a call records its first operator. */
  dynamo_start: artifact(['call', 'record'], (event, { begun }) => {
    const { call } = event
    if (call === null) return null
    if (event.kind === 'call') {
      if (event.phase === 'start') begun.set(call, `${event.name} ${at(event.user)}`)
      else begun.delete(call)
      return null
    }
    const started = begun.get(call)
    begun.delete(call)
    return started === undefined ? null : `Step 1: torchdynamo start tracing ${started}`
  }),
  /** What dynamo does in detail. */
  dynamo_debug: artifact(['graph', 'inline', 'guard'], (event) => {
    if (event.kind === 'graph') return event.role === 'captured' ? `COMPILING GRAPH due to ${compileReason(event)}` : null
    if (event.kind === 'guard') return `guard failure (${event.what}) at ${at(event.user)}: expected ${event.expected}, actual ${event.actual}`
    const { phase, what, name, type, user } = event
    if (phase === 'exit') return `DONE INLINING ${what} ${name}`
    return `INLINING ${what} ${name}${type === null || type === name ? '' : ` (${type})`} from ${at(user)}`
  }),
  graph_breaks: artifact(['break'], ({ reason, stack }, { breaks }) => {
    const place = at(stack.at(-1))
    if (breaks.has(place)) return `Graph break (details suppressed) in user code at ${place}`
    breaks.add(place)
    return `Graph break in user code at ${place}\nReason: ${reason}\nUser code traceback:\n${traceback(stack)}`
  }),
  recompiles: artifact(['recompile'], ({ fn, name, reason, expected, actual, user }, { recompiles }) => {
    // The count includes this one: the guards that failed are those of the recording before.
    const failed = fn === null ? '' : `${fn}/${(recompiles.get(fn) ?? 1) - 1}: `
    return `Recompiling function ${name} in ${at(user)}\n    triggered by the following guard failure(s):\n    - ${failed}${reason}. expected ${expected}, actual ${actual}`
  }),
  guards: ofCaptured(({ nodes }) => {
    const inputs = nodes.filter(({ op }) => op === 'placeholder')
    const checks = inputs.map(({ name, spec }) =>
      spec === null ? `- TYPE_MATCH: ${name} is a number` : `- TENSOR_MATCH: check_tensor(${name}, ${spec})`,
    )
    return ['GUARDS:', ...checks].join('\n')
  }),
  graph: ofCaptured(({ name, nodes }) => `TRACED GRAPH\n ${name}\n${nodes.map(({ text }) => ` ${text}`).join('\n')}`),
  graph_code: ofCaptured(({ name, code }) => traced(name, code)),
  graph_sizes: ofCaptured(({ name, nodes }) => {
    const sizes = nodes.flatMap((node) => (node.spec === null ? [] : [`${node.name}: ${sizesIn(node.spec)}`]))
    return ['TRACED GRAPH TENSOR SIZES', `===== ${name} =====`, ...sizes].join('\n')
  }),
  trace: artifact(['record'], ({ stack }, state) => {
    const frame = stack.at(-1)
    if (frame === undefined || state.lastLine === `${at(frame)} ${frame.fn}`) return null
    state.lastLine = `${at(frame)} ${frame.fn}`
    const code = sourceLine(frame)
    return `TRACE starts_line ${at(frame)} in ${frame.fn}${code === null ? '' : `\n    ${code.trim()}`}`
  }),
  trace_call: artifact(['record'], ({ operator, args, stack }) => {
    const frame = stack.at(-1)
    return `TRACE FX call ${operator}(${args.join(', ')}) from ${at(frame)}${frame === undefined ? '' : ` in ${frame.fn}`}`
  }),
  aot_joint_graph: artifact(['joint'], ({ ok, why, nodes, graph }) =>
    ok ? traced(`Joint graph ${graph ?? 0}`, nodes.join('\n')) : `There is no joint graph of graph ${graph ?? 0}: ${why ?? ''}`,
  ),
  aot_graphs: artifact(['graph'], ({ role, isJoint, graph, code }) => {
    if (role === 'captured') return isJoint ? null : traced(`Inference graph ${graph ?? 0}`, code)
    return traced(`${role === 'forward' ? 'Forward' : 'Backward'} graph ${graph ?? 0}`, code)
  }),
  fusion: artifact(['fuse'], ({ program, groups, refused }) =>
    [
      `===== fusion of ${program}: ${groups.length} groups =====`,
      ...groups.map(({ kind, members }, i) => `group ${i} (${kind}): ${members.join(', ')}`),
      ...refused.map(({ first, second, reason }) => `cannot fuse ${first} with ${second}: ${reason}`),
    ].join('\n'),
  ),
  schedule: artifact(['fuse', 'memory'], (event) => {
    if (event.kind === 'fuse')
      return [`schedule of ${event.program}:`, ...event.groups.map(({ members }, i) => `  ${i}: ${members.join(', ')}`)].join('\n')
    const lines = event.lifetimes.map(
      ({ buffer, bytes, offset, first, last }) => `  ${buffer}: ${bytes} bytes at ${offset}, steps ${first} to ${last}`,
    )
    return [`memory of ${event.program}: an arena of ${event.arenaBytes} bytes`, ...lines].join('\n')
  }),
  output_code: artifact(['kernel', 'program'], (event) => {
    if (event.kind === 'program') return `Output code:\n${event.source}`
    return event.type === 'extern' ? null : `Kernel ${event.name}:\n${event.text}`
  }),
  kernel_code: artifact(['kernel'], ({ name, type, wasmBytes, cached, text }) => {
    const size = type === 'extern' ? 'an eager kernel' : `${wasmBytes} bytes of WebAssembly${cached ? ', known' : ''}`
    return `kernel ${name} (${type}, ${size}):\n${text}`
  }),
  engines: artifact(['engine'], ({ engine, why }) => `no ${engine}: ${why}`),
  perf_hints: artifact(['fuse', 'lower', 'memory'], (event) => {
    const hints =
      event.kind === 'fuse'
        ? event.refused.map(({ first, second, reason }) => `${first} and ${second} are not fused: ${reason}`)
        : event.kind === 'lower'
          ? event.externs.map(({ node, operator, reason }) => `${node} is left to the eager kernel of ${operator}: ${reason}`)
          : event.copied.map((output) => `output ${output} is computed in memory of its own, and copied to the input that it overwrites`)
    return hints.length === 0 ? null : hints.map((hint) => `perf hint: ${hint}`).join('\n')
  }),
  /** The steps of dynamo: the component `dynamo`. */
  dynamo_steps: artifact(['call', 'graph', 'compiled', 'limit'], (event) => {
    switch (event.kind) {
      case 'call':
        return event.phase === 'end' && event.outcome === 'recorded' ? `Step 1: torchdynamo done tracing ${event.name} (RETURN_VALUE)` : null
      case 'graph':
        return event.role === 'captured' ? `Step 2: calling compiler function for ${event.name}` : null
      case 'compiled':
        return `Step 2: done compiler function ${event.backend} for ${event.name}`
      case 'limit':
        return `hit ${event.what}: function '${event.name}': ${event.reason}`
    }
  }),
  aot_steps: artifact(['partition'], ({ name, saved, bytes, recomputed }) =>
    [`partition of ${name}: ${saved.length} values saved, ${bytes} bytes; ${recomputed.length} computed again`].join('\n'),
  ),
  inductor_steps: artifact(
    ['pass'],
    ({ name, milliseconds, before, after }) => `pass ${name}: ${before ?? '?'} to ${after ?? '?'} nodes, ${milliseconds.toFixed(2)} ms`,
  ),
  failures: artifact(['failure'], ({ stage, code, message, backend }) => `${backend ?? 'the backend'} failed (${stage}): ${code}: ${message}`),
} satisfies Readonly<Record<string, Artifact>>

export type ArtifactName = keyof typeof artifacts
