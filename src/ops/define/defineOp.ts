// One declaration per operator. From it follow the public function and the method of Tensor, the argument checks and their errors, the name that graphs
// print, meta (fake tensors), autograd, decompositions, inductor's lowering, and the row of the coverage table.
//
//     export const relu: Op['relu'] = defineOp({
//       schema: 'relu(Tensor self) -> Tensor',
//       method: true,
//       pointwise: { promotion: 'promote', compute: (x) => call('max', x, constant(x.dtype, 0)) },
//       derivative: ([g], { outputs: [out] }) => [thresholdBackward(g, out, 0)],
//     })
//
// `Op['relu']` is the function's type, which `npm run generate` writes from the schema, as it does the type of the method. An operator that can be called in more ways
// than its schema says is declared as `OpFunction<...>`. Defining an operator has no effect beyond itself; table.ts registers it.
import { FakeTensorMode, decomposed, withMode } from '../../dispatch/index.ts'
import type { Arg, DerivativeContext, Gradients, OpDef, OpTag, PointwiseRule, PromotionRule, Result, ResultSpec } from '../../dispatch/index.ts'
import { InternalError } from '../../errors/index.ts'
import { camelCase, checkArgument, findOverride, inspectAs, isPlainObject, parseSchema, withName } from '../../protocol/index.ts'
import type { Size, TargetFunction } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import type { TensorSpec } from '../../tensor/index.ts'
import { callAs } from './call.ts'
import type { OpDeclaration, OpFunction, OwnDeclaration } from './declaration.ts'
import { inFloat32 } from '../eager/halfPrecision.ts'
import { inPlaceSpec, writeInPlace } from '../eager/inPlace.ts'
import { launchPointwise } from '../eager/pointwise.ts'
import { pointwiseSpec } from '../eager/pointwiseTypes.ts'
import { launchReduction } from '../eager/reduction.ts'
import { reductionSpec } from '../eager/reductionSpec.ts'
import { makeViews } from '../eager/views.ts'
import { opOf } from './table.ts'

/**
 * A declaration whose rules take any arguments, as normalization has checked them against the schema by the time that a rule runs. (The rules are methods, so
 * that rules with the schema's narrower parameters are assignable to them.)
 */
export interface UntypedDeclaration extends Omit<OpDeclaration, 'meta' | 'pointwise' | 'kernel' | 'decompose' | 'derivative' | 'scatter' | 'before'> {
  readonly pointwise?: PointwiseRule
  meta?(...args: readonly Arg[]): ResultSpec
  kernel?(...args: readonly Arg[]): Result
  decompose?(...args: readonly Arg[]): Result
  derivative?(grads: readonly (Tensor | null)[], ctx: DerivativeContext): Gradients
  scatter?(value: Tensor, ...args: readonly Arg[]): Tensor
  before?(...args: readonly Arg[]): void
}

/** An operator before its meta and its kernel are known. */
type OpFacts = Omit<OpDef, 'meta' | 'kernel'>

let nextId = 0

const own = new WeakSet<OpDef>()

/**
 * Declares an operator and returns its public function. `registerOp` makes it known to graphs and gives Tensor its method.
 * Throws InternalError if the declaration contradicts itself, ArgumentError if its schema cannot be read.
 */
export function defineOp<F extends TargetFunction, const S extends string, const P extends PromotionRule = never, const B extends string = never>(
  declaration: OwnDeclaration<S, P, B>,
): OpFunction<F>
export function defineOp(declaration: UntypedDeclaration): OpFunction {
  const fn = makeOp(declaration)
  own.add(fn.op)
  return fn
}

/** Whether an operator is tensorfx's own, so that its rules are those of this version. */
export const isOwnOp = (op: OpDef): boolean => own.has(op)

/** {@link defineOp} for the operators of programs, `defineOp` of tensorfx/ops: for vmap, ONNX and autocast they may have no rules. */
export function defineCustomOp<
  F extends TargetFunction,
  const S extends string,
  const P extends PromotionRule = never,
  const B extends string = never,
>(declaration: OpDeclaration<S, P, B>): OpFunction<F>
export function defineCustomOp(declaration: UntypedDeclaration): OpFunction {
  return makeOp(declaration)
}

/** {@link defineOp} for a declaration whose schema is known only at run time. */
export function makeOp(declaration: UntypedDeclaration): OpFunction {
  checkArgument(isPlainObject(declaration), 'defineOp', 'declaration', 'an object { schema, … }', declaration)
  const schema = parseSchema(declaration.schema)
  const qualname = `${declaration.namespace ?? 'torch'}.${schema.name}`
  const functional = declaration.functional === undefined ? null : (opOf(declaration.functional) ?? null)
  const tags = new Set<OpTag>(declaration.tags ?? [])
  if (declaration.pointwise !== undefined) tags.add('pointwise')
  if (declaration.reduction !== undefined) tags.add('reduction')
  if (functional !== null) tags.add('mutates')
  if (declaration.reduction !== undefined && (schema.args[1]?.name !== 'dim' || schema.args[2]?.name !== 'keepdim')) {
    throw new InternalError(`operator ${qualname}: the arguments of a reduction are (self, dim, keepdim), in this order`)
  }
  if (declaration.functional !== undefined && functional === null)
    throw new InternalError(`operator ${qualname}: \`functional\` is not a function of the operator table`)
  checkFacts(qualname, declaration)
  const { alone, matrices } = declaration
  const fn =
    alone !== undefined
      ? (...args: unknown[]): unknown =>
          args.length === 1 && !isPlainObject(args[0]) && findOverride(args) === null ? Reflect.apply(alone, null, args) : call.with(args)
      : schema.returns.length > 0
        ? (...args: unknown[]): unknown => call.with(args)
        : (...args: unknown[]): unknown => {
            const result = call.with(args)
            return Array.isArray(result) ? undefined : result
          }
  withName(fn, camelCase(schema.name))
  inspectAs(fn, () => `[${qualname}: ${schema.text}]`)
  const facts: OpFacts = {
    id: nextId++,
    name: schema.name,
    qualname,
    schema,
    tags,
    fn,
    method: declaration.method === true,
    decompose: declaration.decompose ?? null,
    derivative: declaration.derivative ?? null,
    pointwise: declaration.pointwise ?? null,
    reduction: declaration.reduction ?? null,
    functional,
    aliasOf: opOf(declaration.aliasOf) ?? null,
    scatter: declaration.scatter ?? null,
    dynamicScalars: declaration.dynamicScalars ?? [],
    indices: declaration.indices ?? null,
    vmap: declaration.vmap ?? functional?.vmap ?? (matrices === undefined ? null : { leading: matrices }),
    onnx: declaration.onnx ?? (matrices === undefined ? null : NO_LINEAR_ALGEBRA),
    autocast: declaration.autocast ?? 'as is',
    prepare: declaration.prepare ?? null,
    module: declaration.module ?? null,
  }
  const meta = declaration.meta ?? derivedMeta(facts)
  const op: OpDef = Object.assign(facts, { meta, kernel: declaredKernel(declaration, meta) ?? derivedKernel(facts, meta) })
  const call = callAs(op, declaration.recordAs === 'method' ? 'method' : 'function', declaration.recordAs === 'keywords', declaration.before)
  return Object.assign(fn, { op })
}

/** The rule for ONNX of operators on matrices. */
const NO_LINEAR_ALGEBRA = { none: 'ONNX has no linear algebra beyond products' } as const

/** What to write for a fact that a declaration lacks. */
const FACTS = {
  vmap: "how vmap computes a batch: 'dimensions', { leading: ['self'] }, … (BatchRule in src/dispatch/facts.ts), or { none: 'why there is no rule' }",
  onnx: "how it becomes nodes of an ONNX model: a rule (OnnxRule in src/dispatch/facts.ts), or { none: 'why there is none' }",
  autocast: "what autocast does with its arguments: 'half', 'float32', 'promote', 'as is' or 'untouched'",
} as const

/**
 * Throws InternalError for an operator of tensorfx that leaves a fact out which does not follow from how it computes. (Types demand the same; sources in JavaScript and
 * declarations that are made at run time have none.)
 */
function checkFacts(qualname: string, declaration: UntypedDeclaration): void {
  const { pointwise, reduction, functional, decompose, matrices } = declaration
  if (!/^torch\.(?!ops\.(?!tensorfx\.))/.test(qualname)) return
  if (pointwise !== undefined || reduction !== undefined || functional !== undefined || decompose !== undefined) return
  for (const [name, meaning] of Object.entries(FACTS))
    if (!Object.hasOwn(declaration, name) && (matrices === undefined || name === 'autocast'))
      throw new InternalError(`operator ${qualname} declares no \`${name}\`: write ${meaning}`)
}

function derivedMeta(op: OpFacts): OpDef['meta'] {
  const { functional, decompose } = op
  if (functional !== null) return (...args) => inPlaceSpec(op.qualname, functional, args)
  if (op.pointwise !== null) return (...args) => pointwiseSpec(op, args)
  if (op.reduction !== null) return (...args) => reductionSpec(op, args)
  if (decompose !== null) return (...args) => decomposedSpec(op.qualname, decompose, args)
  throw new InternalError(`operator ${op.qualname} declares no meta, and none can be derived`)
}

/** Runs the decomposition on fake tensors. */
function decomposedSpec(qualname: string, decompose: NonNullable<OpDef['decompose']>, args: readonly Arg[]): ResultSpec {
  const result = withMode(new FakeTensorMode(), () => decomposed(qualname, decompose, args))
  const one = (t: Tensor): TensorSpec<Size> => ({ shape: t.symSizes, dtype: t.dtype, strides: t.symSteps, offset: t.symOffset })
  return result instanceof Tensor ? one(result) : result.map(one)
}

function declaredKernel({ kernel, halvesInFloat32, matrices }: UntypedDeclaration, meta: OpDef['meta']): OpDef['kernel'] {
  return kernel !== undefined && (halvesInFloat32 === true || matrices !== undefined) ? inFloat32(kernel, meta) : (kernel ?? null)
}

function derivedKernel(op: OpFacts, meta: OpDef['meta']): OpDef['kernel'] {
  const { functional } = op
  if (functional !== null) return (...args) => writeInPlace(op.qualname, functional, args)
  if (op.pointwise !== null) return (...args) => launchPointwise(op, args, null)
  if (op.reduction !== null) return (...args) => launchReduction(op, args)
  if (op.tags.has('view')) return (...args) => makeViews(op, meta, args)
  return null
}
