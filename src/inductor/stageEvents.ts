// The stages of a compilation as events: what was lowered and what not, what was fused and what not, the memory plan, the kernels, the program.
import { framesOf } from '../aot/joint/graphEvent.ts'
import { announce, emit, wants } from '../events/index.ts'
import { dtypeInfo, getNumThreads, kernelCacheStats } from '../kernels/index.ts'
import type { Compilation } from './compilation.ts'
import { emitGroup } from './emit/kernels.ts'
import type { EmittedGroup } from './emit/kernels.ts'
import { nodesOf } from './groups.ts'
import type { Group } from './groups.ts'
import { outputsOf } from './ir.ts'
import type { IrNode } from './ir.ts'
import { lifetimesOf } from './memoryPlan.ts'
import type { CompileObserver } from './observers.ts'
import type { Placement } from './placement.ts'
import { formatNode } from './print.ts'

/** How a group was emitted. */
interface Timing {
  readonly milliseconds: number
  /** Whether no module had to be compiled. */
  readonly cached: boolean
}

/** For those who listen to events, until the stage is over. */
const timings = new WeakMap<EmittedGroup, Timing>()

/** {@link emitGroup}, timed if someone wants to know. */
export function emitTimed(name: string, group: Group, placement: Placement): EmittedGroup {
  if (!wants('kernel')) return emitGroup(name, group, placement)
  const start = performance.now()
  const { compiled } = kernelCacheStats()
  const emitted = emitGroup(name, group, placement)
  timings.set(emitted, { milliseconds: performance.now() - start, cached: kernelCacheStats().compiled === compiled })
  return emitted
}

/** A node as `buf1 (relu)`. */
const label = (node: IrNode): string => `${outputsOf(node)[0]?.name ?? node.origin} (${node.op})`

function tellLowering(c: Compilation): void {
  const { nodes, rewritten } = c.get('ir')
  const externs = nodes.filter((node) => node.kind === 'extern')
  announce({ kind: 'lower', externs: externs.length, rewrites: rewritten.length }, () => ({
    kind: 'lower',
    program: c.name,
    nodes: nodes.map(formatNode),
    externs: externs.map(({ origin, def, reason }) => ({ node: origin, operator: def.qualname, reason })),
    rewrites: rewritten,
  }))
}

function tellFusion(c: Compilation): void {
  if (!wants('fuse')) return
  const groups = c.get('groups')
  const groupOf = new Map(groups.flatMap((group) => nodesOf(group).map((node) => [node, group] as const)))
  // Nodes that did not fit at first may have been joined later, by way of others.
  const refused = c.refused.filter(({ first, second }) => groupOf.get(first) !== groupOf.get(second))
  emit({
    kind: 'fuse',
    program: c.name,
    groups: groups.map((group) => ({ kind: group.kind, members: nodesOf(group).map(label) })),
    refused: refused.map(({ first, second, reason }) => ({
      first: label(first),
      second: label(second),
      reason,
      origins: [first.origin, second.origin] as const,
    })),
  })
}

function tellMemory(c: Compilation): void {
  if (!wants('memory')) return
  const { bytes, offsets } = c.get('plan')
  const placement = c.get('placement')
  const lifetimes = lifetimesOf(c.get('ir'), c.get('groups'), placement).map(({ buffer, first, last }) => ({
    buffer: buffer.name,
    origin: buffer.producer?.origin ?? null,
    bytes: buffer.numel * dtypeInfo[buffer.dtype].size,
    offset: offsets.get(buffer) ?? 0,
    first,
    last,
  }))
  const copied = [...c.writeBacks.keys()].filter((output) => !placement.outputsInPlace.has(output))
  emit({ kind: 'memory', program: c.name, arenaBytes: bytes, lifetimes, inPlace: [...placement.outputsInPlace], copied })
}

function tellKernels(c: Compilation): void {
  if (!wants('kernel')) return
  const nodes = new Map([...c.graph.graph.nodes].map((node) => [node.name, node]))
  for (const emitted of c.get('kernels')) {
    const { step, report } = emitted
    const lines = report.origins.flatMap((name) => {
      const node = nodes.get(name)
      return (node === undefined ? null : framesOf(node))?.at(-1) ?? []
    })
    const { milliseconds = 0, cached = false } = timings.get(emitted) ?? {}
    emit({
      kind: 'kernel',
      name: report.name,
      type: report.kind,
      engine: report.engine,
      threads: getNumThreads(),
      origins: report.origins,
      lines: [...new Map(lines.map((frame) => [`${frame.file}:${frame.line}:${frame.column}`, frame])).values()],
      text: report.text,
      flops: report.flops,
      bytes: report.bytes,
      wasmBytes: step.kind === 'kernel' ? step.compiled.wasm.length : 0,
      milliseconds,
      cached: step.kind === 'kernel' && cached,
    })
  }
}

const tellers: ReadonlyMap<string, (c: Compilation) => void> = new Map([
  ['lower', tellLowering],
  ['fuse', tellFusion],
  ['planMemory', tellMemory],
  ['emit', tellKernels],
  ['assemble', (c) => emit({ kind: 'program', name: c.name, source: c.get('program').source })],
])

/** Tells the stream of events about each stage. */
export const tellingStages: CompileObserver = { after: ({ name }, c) => tellers.get(name)?.(c) }
