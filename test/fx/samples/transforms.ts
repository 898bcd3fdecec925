// The transforms of the goldens, applied to our graphs as the goldens' Python applied them to PyTorch's.
import { torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'
import { Transformer, _assertIsNone, operator, replacePattern, symbolicTrace } from 'tensorfx/fx'
import type { GraphModule, Node } from 'tensorfx/fx'
import { AnnotateTypesWithSchema, NormalizeArgs, NormalizeOperators, fuse, splitConstSubgraphs } from 'tensorfx/fx/experimental'
import { CSEPass, splitModule } from 'tensorfx/fx/passes'
import { Dropout } from 'tensorfx/nn'
import type { TargetFunction } from '../../../src/protocol/index.ts'
import { usedDifferences } from './differences.ts'

/** What a transform made: the module, and what the golden says besides. */
export interface Transformed {
  readonly gm: GraphModule
  /** The module before, where the transform first adds something. */
  readonly before?: GraphModule
  readonly changed?: boolean
  readonly modified?: boolean
  readonly matches?: number
}

/** `x + y`, in either spelling. */
const isAdd = (node: Node): boolean => node.target === operator.add || (node.op === 'call_method' && node.target === 'add')

function replaceAddMul(gm: GraphModule): Transformed {
  for (const node of gm.graph.nodes) {
    if (!isAdd(node)) continue
    node.op = 'call_function'
    node.target = torch.mul as TargetFunction
  }
  gm.recompile()
  return { gm }
}

function insertReluAfterAdd(gm: GraphModule): Transformed {
  for (const node of [...gm.graph.nodes].filter(isAdd)) {
    const relu = gm.graph.insertingAfter(node, () => gm.graph.callFunction(torch.relu as TargetFunction, [node]))
    node.replaceAllUsesWith(relu, (user) => user !== relu)
  }
  gm.recompile()
  return { gm }
}

/** PyTorch's torch.fx.experimental.optimization.remove_dropout. */
class DropoutRemover extends Transformer {
  override callModule(target: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return this.fetchAttr(target) instanceof Dropout ? args[0] : super.callModule(target, args, kwargs)
  }
}

function deadCode(gm: GraphModule): Transformed {
  const removed = gm.graph.eliminateDeadCode()
  const checks = gm.graph.eliminateDeadCode((node) => node.target !== _assertIsNone && node.isImpure())
  if (checks) usedDifferences.add('none-checks-stay')
  gm.recompile()
  return { gm, changed: removed || checks }
}

function deadCodeWithDead(gm: GraphModule): Transformed {
  const input = [...gm.graph.nodes].find((node) => node.op === 'placeholder') as Node
  gm.graph.insertingBefore(gm.graph.outputNode(), () => {
    const neg = gm.graph.callFunction(torch.neg as TargetFunction, [input])
    gm.graph.callFunction(torch.add as TargetFunction, [neg, 1])
  })
  const before = gm.deepCopy()
  return { before, ...deadCode(gm) }
}

function patternReluAdd(gm: GraphModule): Transformed {
  const matches = replacePattern(
    gm,
    (x: Tensor, y: Tensor) => torch.add(torch.relu(x), y),
    (x: Tensor, y: Tensor) => torch.sub(torch.sigmoid(x), y),
  )
  return { gm, matches: matches.length }
}

/** Part 0: the first half of the calls, rounded up; 1: the others. */
function firstHalf(gm: GraphModule): (node: Node) => number {
  const calls = [...gm.graph.nodes].filter((node) => node.op.startsWith('call_'))
  const first = new Set(calls.slice(0, Math.ceil(calls.length / 2)))
  return (node) => (first.has(node) ? 0 : 1)
}

export const transforms: Readonly<Record<string, (gm: GraphModule) => Transformed>> = {
  replace_add_mul: replaceAddMul,
  insert_relu_after_add: insertReluAfterAdd,
  // PyTorch's fuse traces anew.
  fuse: (gm) => ({ gm: fuse(symbolicTrace(gm).eval()) }),
  remove_dropout: (gm) => ({ gm: new DropoutRemover(symbolicTrace(gm)).transform() }),
  dce: deadCode,
  dce_with_dead: deadCodeWithDead,
  transformer_identity: (gm) => ({ gm: new Transformer(gm).transform() }),
  cse: (gm) => {
    const { graphModule, modified } = new CSEPass().run(gm)
    return { gm: graphModule, modified }
  },
  fx_graph_cse: (gm) => ({ gm: new CSEPass().run(gm).graphModule }),
  split_module: (gm) => ({ gm: splitModule(gm, firstHalf(gm)) }),
  const_fold: (gm) => ({ gm: splitConstSubgraphs(gm) }),
  normalize: (gm) => ({ gm: new NormalizeArgs(gm).transform() }),
  normalize_ops: (gm) => ({ gm: new NormalizeOperators(gm).transform() }),
  annotate_types: (gm) => ({ gm: new AnnotateTypesWithSchema(gm).transform() }),
  copy: (gm) => ({ gm: gm.deepCopy() }),
  pattern_relu_add: patternReluAdd,
}

/** The transforms that change what a program computes. */
export const changesMeaning: readonly string[] = ['replace_add_mul', 'insert_relu_after_add', 'pattern_relu_add']
