// Kernel templates: a matrix product or convolution with the pointwise nodes of its group as epilogue.
import { InternalError } from '../errors/index.ts'
import {
  bufferParam,
  compileDirectConv,
  compileDirectConvWeight,
  compileGemm,
  directConvScratchBytes,
  directConvWeightScratchBytes,
  fitsDirectConv,
  fitsDirectConvWeight,
  load,
  loopVar,
  store,
} from '../kernels/index.ts'
import type { CompiledKernel, Expr, GemmSpec, Index, LoopVar, Stmt } from '../kernels/index.ts'
import { Operands, indicesOf } from './codegen.ts'
import type { Operand } from './codegen.ts'
import { squeezed, stridesOver } from './spaces.ts'
import type { Group } from './scheduler.ts'
import type { Access, Buffer, PointwiseNode, TemplateNode } from './ir.ts'

export interface TemplateKernel {
  readonly compiled: CompiledKernel
  readonly spec: GemmSpec
  /** What each parameter of the kernel stands for, in order; the scratch pointer comes last and is not listed. */
  readonly operands: readonly Operand[]
  readonly scratchBytes: number
}

/** Emits a template group; `stored` are the buffers that somebody outside the group reads. */
export function emitTemplate(name: string, group: Group, stored: ReadonlySet<Buffer>): TemplateKernel {
  const template = group.nodes.find((n) => n.kind === 'template') as TemplateNode
  const vars = template.iter.map((size, i) => loopVar(['m', 'n'][i - template.iter.length + 2] ?? `b${i}`, size))
  const operands = new Operands()
  const buffers = template.reads.map((access) => operands.reading(access.buffer, access.offset))
  const epilogue = (acc: Expr): Stmt[] => emitEpilogue(group, template, vars, operands, stored, acc)
  // Run it once so that all operands are known before the parameters are listed.
  epilogue({ kind: 'local', dtype: 'float32', local: { name: 'acc', dtype: 'float32' } })
  const scratch = bufferParam('scratch', 'float32', 'readwrite')
  const spec = template.build({
    name,
    batch: vars.slice(0, -2),
    rows: vars.at(-2) as LoopVar,
    cols: vars.at(-1) as LoopVar,
    epilogue,
    buffers,
    params: [...operands.params(), scratch],
  })
  if (fitsDirectConv(spec))
    return { compiled: compileDirectConv(spec), spec, operands: operands.operands(), scratchBytes: directConvScratchBytes(spec) }
  if (fitsDirectConvWeight(spec))
    return { compiled: compileDirectConvWeight(spec), spec, operands: operands.operands(), scratchBytes: directConvWeightScratchBytes(spec) }
  return { compiled: compileGemm(spec), spec, operands: operands.operands(), scratchBytes: template.scratchBytes }
}

function emitEpilogue(
  group: Group,
  template: TemplateNode,
  vars: readonly LoopVar[],
  operands: Operands,
  stored: ReadonlySet<Buffer>,
  acc: Expr,
): Stmt[] {
  const dims = squeezed(template.iter)
  const loops = vars.filter((v) => v.extent !== 1)
  const values = new Map<Buffer, Expr>([[template.out, acc]])
  const indexOf = (iter: readonly number[], strides: readonly number[], offset: number): Index => {
    const over = stridesOver(iter, strides, dims)
    if (over === null) throw new InternalError(`inductor: a node does not fit the loops of template ${template.op}`)
    return { base: offset, terms: loops.map((loop, i) => ({ loop, stride: over[i] as number })).filter((t) => t.stride !== 0), dynamic: [] }
  }
  const flat: number[] = []
  let step = 1
  for (let i = template.iter.length - 1; i >= 0; i--) {
    flat[i] = step
    step *= template.iter[i] as number
  }
  const stmts: Stmt[] = []
  const keep = (out: Buffer): void => {
    if (stored.has(out)) stmts.push(store(operands.writing(out), indexOf(template.iter, flat, 0), values.get(out) as Expr))
  }
  keep(template.out)
  for (const node of group.nodes) {
    if (node === template) continue
    const pointwise = node as PointwiseNode
    const readAccess = (access: Access): Expr =>
      values.get(access.buffer) ?? load(operands.reading(access.buffer), indexOf(pointwise.iter, access.strides, access.offset))
    const scalars = pointwise.scalars.map((s) => operands.scalar(s.input, s.dtype))
    const indices = pointwise.compute.length > 2 ? indicesOf(pointwise.iter, dims, loops) : []
    values.set(pointwise.out, pointwise.compute(pointwise.reads.map(readAccess), scalars, indices))
    keep(pointwise.out)
  }
  return stmts
}
