// The sentences of a flight report.
import type { CapturedStack } from '../../provenance/index.ts'
import { table } from '../common/table.ts'
import type { Change, CompilerOrigin, FlightOrigin, JumpOrigin, OperatorOrigin, TensorOrigin } from './flightOrigin.ts'
import type { Given } from './places.ts'
import type { StateKind } from './state.ts'
import type { Trigger } from './trouble.ts'

/** What was noticed: `the loss is NaN`. */
export function triggerText({ kind, name, value, index }: Trigger): string {
  if (kind === 'jump') return `the loss jumped to ${value}`
  if (kind === 'loss') return `the loss is ${value}`
  return `${tensorText(kind, name ?? '')} is ${value}${at(index)}`
}

/** Where it comes from, line by line. `step` is the number of the step. */
export function originLines(origin: FlightOrigin, step: number): readonly string[] {
  switch (origin.kind) {
    case 'operator':
      return operatorLines(origin)
    case 'compiled code':
      return compilerLines(origin)
    case 'jump':
      return jumpLines(origin)
    case 'unknown':
      return [`The origin is not known: ${origin.why}`]
    default:
      return [tensorLine(origin, step)]
  }
}

function operatorLines(origin: OperatorOrigin): readonly string[] {
  const { phase, given, stack, index, element, reached } = origin
  const lines = [`Origin: ${operatorText(origin)}: its result is ${element}${at(index)}, and its arguments are good.`, ...given.map(givenLine)]
  if (phase === 'optimizer' && reached !== null) lines.push(`  It was first written to ${reached}.`)
  return [...lines, ...stackLines(phase === 'backward' ? 'The forward call' : 'The call', stack)]
}

function operatorText({ phase, operator, computedBy, gradFn }: OperatorOrigin): string {
  if (phase !== 'backward') return `${operator}, in the ${phase}`
  if (gradFn === null) return `the sum of gradients (${computedBy}), in the backward`
  return `${gradFn}, the derivative of ${operator}${computedBy === operator ? '' : ` (in its ${computedBy})`}`
}

function givenLine({ argument, index, element }: Given): string {
  return index === null ? `  ${argument}: up to ${rounded(element)} in magnitude` : `  ${argument}${at(index)}: ${rounded(element)}`
}

function compilerLines({ backend, graph, node, operator, index, element, stack }: CompilerOrigin): readonly string[] {
  const lines = [
    `Origin: code that the backend '${backend}' compiled for ${graph}: a result is ${element}${at(index)}, and eager kernels give a good one.`,
  ]
  if (node !== null) lines.push(`  The first node that is bad when it is compiled: ${node} (${operator}).`)
  return [...lines, ...stackLines('The call', stack)]
}

/** How many weights a report lists. */
const MOST_WEIGHTS = 10

function jumpLines({ changes, inputs }: JumpOrigin): readonly string[] {
  const lines = [
    'No element is NaN or infinite. The weights by how unusual the update before this step was, relative to their norms:',
    table(['weight', 'update', 'usual', 'gradient', 'usual'], changes.slice(0, MOST_WEIGHTS).map(changeRow)),
  ]
  if (inputs.length > 0) lines.push('The inputs:', ...inputs.map(inputLine))
  return lines
}

const changeRow = ({ name, update, usualUpdate, gradient, usualGradient }: Change): string[] => [
  name,
  ...[update, usualUpdate, gradient, usualGradient].map((value) => (value === null ? '-' : value.toExponential(1))),
]

function inputLine({ name, largest, usual }: JumpOrigin['inputs'][number]): string {
  return `  ${name}: up to ${rounded(largest)} in magnitude${usual === null ? '' : `, usually ${rounded(usual)}`}`
}

function tensorLine({ kind, name, index, element, wasGood }: TensorOrigin, step: number): string {
  return `Origin: ${tensorText(kind, name)} was ${element}${at(index)} ${whenBad(kind, wasGood, step)}. No operator is at fault.`
}

function whenBad(kind: StateKind, wasGood: boolean, step: number): string {
  if (kind === 'input') return 'when the step started'
  return wasGood ? `when step ${step} started, and no recorded step made it so` : 'before the first recorded step'
}

/** A tensor of the state, by name. */
function tensorText(kind: StateKind, name: string): string {
  switch (kind) {
    case 'gradient':
      return `the gradient of ${name}`
    case 'optimizer state':
      return `the optimizer state ${name}`
    case 'input':
      return name
    default:
      return `${kind} ${name}`
  }
}

const at = (index: readonly number[]): string => (index.length === 0 ? '' : ` at [${index.join(', ')}]`)

const rounded = (value: number): string => String(Number(value.toPrecision(6)))

const stackLines = (head: string, stack: CapturedStack | undefined): readonly string[] =>
  stack === undefined || stack.frames.length === 0 ? [] : [`${head}:`, String(stack).trimEnd()]
