// The constraints of a graph, node by node. PyTorch's torch.fx.experimental.migrate_gradual_types.constraint_generator.
import { UnsupportedError } from '../../../errors/index.ts'
import type { Module } from '../../../module/index.ts'
import { attributeAt } from '../../../module/index.ts'
import { isTensorLike } from '../../../protocol/index.ts'
import type { Graph } from '../../graph/graph.ts'
import type { Node } from '../../graph/node.ts'
import { GraphModule } from '../../run/graphModule.ts'
import { ArgumentError } from '../../../errors/index.ts'
import { RuleTable } from '../gradualTypes/layerRules.ts'
import type { RuleTarget } from '../gradualTypes/layerRules.ts'
import { Dyn, TensorType, gradualType, isTensorType } from '../gradualTypes/tensorType.ts'
import { BinConstraintT, Conj } from './constraint.ts'
import type { Constraint, DVar, TVar } from './constraint.ts'
import { moduleRules } from './moduleRules.ts'
import { opEq, opLeq, opPrecision } from './operation.ts'
import { operatorRules } from './operatorRules.ts'
import { MAX_TENSOR_RANK } from './ruleParts.ts'
import type { ConstraintRule, SymbolTable } from './ruleParts.ts'
import { Fresh } from './util.ts'

const rules = new RuleTable<ConstraintRule>('Inference rule', { ...operatorRules, ...moduleRules })

/**
 * Tells {@link ConstraintGenerator} which constraints a function, or a class of modules, has. A rule draws the variable of its result first, and notes it in the symbol
 * table. PyTorch's register_inference_rule.
 *
 *     registerInferenceRule(torch.relu, ({ node, symbols, fresh }) => {
 *       const output = fresh.tensor()
 *       const input = symbols.get(node.args[0])
 *       symbols.set(node, output)
 *       return [new BinConstraintT(input, output, opEq)]
 *     })
 *
 * @throws ArgumentError if there is a rule already.
 */
export const registerInferenceRule = (target: RuleTarget, rule: ConstraintRule): void => rules.add(target, rule)

/**
 * Generates the constraints on the types in a graph. Placeholders have those that their types say. PyTorch's ConstraintGenerator.
 *
 *     const generator = new ConstraintGenerator(gm)
 *     const [constraints, counter] = generator.generateConstraints(0)
 */
export class ConstraintGenerator {
  /** The module that has the layers and parameters. */
  readonly traced: Module
  readonly graph: Graph
  /** The variable of each node's value; nodes whose value is neither a tensor nor a size have none. */
  readonly symbolDict: SymbolTable = new Map()
  /** The constraints of each node, once they are generated. */
  readonly constraintsOf: Map<Node, readonly Constraint[]> = new Map()

  /** @throws ArgumentError without a graph, if the module is not a GraphModule. */
  constructor(traced: Module, graph: Graph | null = null) {
    this.traced = traced
    const own = graph ?? (traced instanceof GraphModule ? traced.graph : null)
    if (own === null) throw new ArgumentError('ConstraintGenerator: the module has no graph; pass one, or a GraphModule.')
    this.graph = own
  }

  /** The constraints of all nodes, and the counter after the last variable. @throws UnsupportedError for an operation without a rule. */
  generateConstraints(counter = 0): [constraints: Conj, counter: number] {
    const fresh = new Fresh(counter)
    const all: Constraint[] = []
    for (const node of this.graph.nodes) {
      const own = this.#constraintsOf(node, fresh)
      this.constraintsOf.set(node, own)
      for (const constraint of own) all.push(constraint)
    }
    return [new Conj(all), fresh.counter]
  }

  /** The constraints of one node, and the counter after its variables. PyTorch's generate_constraints_node. */
  generateConstraintsNode(node: Node, counter: number): [constraints: readonly Constraint[], counter: number] {
    const fresh = new Fresh(counter)
    return [this.#constraintsOf(node, fresh), fresh.counter]
  }

  #constraintsOf(node: Node, fresh: Fresh): readonly Constraint[] {
    switch (node.op) {
      case 'output':
        return []
      case 'placeholder': {
        const type = gradualType(node.type)
        const variable = this.#symbol(node, fresh.tensor())
        const known = isTensorType(type) ? type : Dyn
        return [new BinConstraintT(known, variable, opPrecision), new BinConstraintT(variable, MAX_TENSOR_RANK, opLeq)]
      }
      case 'get_attr': {
        const value = attributeAt(this.traced, node.target)
        if (!isTensorLike(value) || value.shape.length === 0) return []
        if (value.shape.length > MAX_TENSOR_RANK)
          throw new UnsupportedError(`'${node.target}' has rank ${value.shape.length}; constraints know ranks up to ${MAX_TENSOR_RANK}.`)
        return [new BinConstraintT(this.#symbol(node, fresh.tensor()), TensorType(value.shape), opEq)]
      }
      default:
        return rules.get(this.traced, node)({ node, root: this.traced, symbols: this.symbolDict, fresh })
    }
  }

  #symbol<V extends TVar | DVar>(node: Node, variable: V): V {
    this.symbolDict.set(node, variable)
    return variable
  }
}
