// Emits each group as a step of the program: a compiled kernel, or a call of an eager kernel. Also describes it for reports.
import { compileKernel, currentEngine, knownScratchBytes, verifyKernel } from '../../kernels/index.ts'
import type { CompiledKernel, ComputedBy, EngineName, Kernel, SpareKernel } from '../../kernels/index.ts'
import { costOf } from '../cost.ts'
import type { KernelCost } from '../cost.ts'
import { nodesOf } from '../groups.ts'
import type { Group, LoopGroup, TemplateGroup } from '../groups.ts'
import type { ExternCall } from '../ir.ts'
import type { Placement } from '../placement.ts'
import { emitLoops } from './loops.ts'
import type { Operand } from './operands.ts'
import { emitTemplate } from './template.ts'
import type { PackedOperand } from './template.ts'

/** One step of the program. */
export type Step =
  | {
      readonly kind: 'kernel'
      /** What the source says beside the call. */
      readonly name: string
      /** The name of the kernel in reports. */
      readonly id: string
      readonly compiled: CompiledKernel
      readonly operands: readonly Operand[]
      /** Bytes of scratch memory; 0 for none. Its address follows the operands. */
      readonly scratchBytes: number
      /** What runs where there is no room for that; null where nothing needs less. */
      readonly spare: SpareKernel | null
      /** What runs where an operand was packed before, and which it is; null where none is. */
      readonly packed: PackedOperand | null
    }
  | { readonly kind: 'extern'; readonly node: ExternCall; readonly id: string }

/** One kernel of a compiled graph, for reports: what was fused, and its loops. */
export interface KernelReport extends KernelCost {
  readonly name: string
  readonly kind: Group['kind']
  /** The instructions that it was compiled to. */
  readonly engine: EngineName
  /** Operators in it, in order. */
  readonly ops: readonly string[]
  /** Graph nodes that it computes. */
  readonly origins: readonly string[]
  /** The loop IR as text, for a template after a line that says what it computes; for an extern step the operator's name. */
  readonly text: string
  /** What has computed its last call; absent for an eager kernel. */
  readonly computedBy?: () => ComputedBy
}

/** A group after emission. */
export interface EmittedGroup {
  readonly step: Step
  readonly report: KernelReport
  /** Its loop IR: a kernel, or the epilogue of a template; null for an eager kernel. */
  readonly loops: (() => Kernel) | null
}

/** The comment at a kernel call names at most this many operators. */
const MAX_LABEL = 8

/** Emits and compiles a group. */
export function emitGroup(name: string, group: Group, placement: Placement): EmittedGroup {
  const nodes = nodesOf(group)
  const ops = nodes.map((node) => node.op)
  const origins = [...new Set(nodes.map((node) => node.origin))]
  const engine = currentEngine()
  if (group.kind === 'extern') {
    const { node } = group
    const cost = costOf(group, new Set(node.outs))
    return {
      step: { kind: 'extern', node, id: name },
      report: { name, kind: 'extern', engine, ops, origins, text: node.def.qualname, ...cost },
      loops: null,
    }
  }
  const { compiled, operands, scratchBytes, spare, packed, loops, text } =
    group.kind === 'template' ? templateKernel(name, group, ops, placement) : loopKernel(group, ops, placement)
  const stored = new Set(operands.flatMap((operand) => (operand.kind === 'buffer' && operand.written ? [operand.buffer] : [])))
  const label = ops.length <= MAX_LABEL ? ops.join(' ') : `${ops.slice(0, MAX_LABEL - 1).join(' ')} … (${ops.length} operators)`
  return {
    step: { kind: 'kernel', name: label, id: name, compiled, operands, scratchBytes, spare, packed },
    report: { name, kind: group.kind, engine, ops, origins, text, ...costOf(group, stored) },
    loops,
  }
}

interface Emitted {
  readonly compiled: CompiledKernel
  readonly operands: readonly Operand[]
  readonly scratchBytes: number
  readonly spare: SpareKernel | null
  readonly packed: PackedOperand | null
  readonly loops: () => Kernel
  readonly text: string
}

/** The name of a kernel, which says nothing of where it is used: kernels that compute the same are compiled once. */
const kernelName = (ops: readonly string[]): string => `fused_${ops.slice(0, 6).join('_')}`

function loopKernel(group: LoopGroup, ops: readonly string[], placement: Placement): Emitted {
  const { kernel, operands } = emitLoops(kernelName(ops), group, placement)
  const compiled = compileKernel(kernel)
  return { compiled, operands, scratchBytes: knownScratchBytes(compiled), spare: null, packed: null, loops: () => kernel, text: compiled.text }
}

function templateKernel(name: string, group: TemplateGroup, ops: readonly string[], placement: Placement): Emitted {
  const [op, ...fused] = ops
  const { epilogue, ...emitted } = emitTemplate(kernelName(ops), group, placement)
  const { iter } = group.template
  const what = `${name}: ${op} template [${iter.join(' x ')}]${fused.length > 0 ? `, epilogue ${fused.join(' -> ')}` : ''}`
  return { ...emitted, loops: epilogue, text: `${what}\n${emitted.compiled.text}` }
}

/** Checks the loops of all groups against the specification of the loop IR. Throws KernelError. */
export function verifyEmitted(groups: readonly EmittedGroup[]): void {
  for (const { loops } of groups) if (loops !== null) verifyKernel(loops())
}
