// Rows of the table of scalar operations for functions that are seldom used: JavaScript computes most of them, one element after the other, for both floating dtypes. Programs on
// tensorfx/core have them with the groups of operators that need them.
import { commonOps } from './commonOps.ts'
import type { RareOp, ScalarOp } from './scalarOpNames.ts'
import { FUNCTION, operation } from './scalarOpRecord.ts'
import type { ScalarOpRecord } from './scalarOpRecord.ts'
import {
  airyAi,
  besselI,
  besselJ,
  besselK,
  besselY,
  erfcx,
  incompleteGamma,
  ndtri,
  scaledBesselI,
  scaledBesselK,
} from '../numbers/besselFunctions.ts'
import { chebyshev, hermiteH, hermiteHe, laguerre, legendre, shiftedChebyshev } from '../numbers/polynomials.ts'
import { digamma, erfc, erfinv, lgamma, polygamma, zeta } from '../numbers/specialFunctions.ts'
import type { HostFunction } from '../wasm/moduleFunctions.ts'
import * as float32 from '../wasm/float32Rare.ts'
import { callHost, callHostFloat32, inline, inlinePair } from '../wasm/scalarCode.ts'
import type { ScalarCode } from '../wasm/scalarCode.ts'

/** `inlined`: the code for float32; without it JavaScript computes that too. */
function rare(name: string, run: HostFunction['run'], arity: HostFunction['arity'] = 1, inlined: ScalarCode | null = null): ScalarOpRecord {
  const callee: HostFunction = { name, arity, run }
  return operation({
    arity,
    conditions: 0,
    dtypes: ['float32', 'float64'],
    narrow: 'rounded',
    yieldsBool: false,
    cost: FUNCTION,
    symbol: null,
    bigint: null,
    reference: (_, a, b) => run(a, b),
    wasm: { float32: inlined ?? callHostFloat32(callee), float64: callHost(callee) },
  })
}

/** The rows by name. */
export const rareOps: Readonly<Record<RareOp, ScalarOpRecord>> = {
  tan: rare('tan', Math.tan),
  asin: rare('asin', Math.asin),
  acos: rare('acos', Math.acos),
  atan: rare('atan', Math.atan),
  atan2: rare('atan2', Math.atan2, 2, inlinePair(float32.atan2)),
  sinh: rare('sinh', Math.sinh, 1, inline(float32.sinh)),
  cosh: rare('cosh', Math.cosh, 1, inline(float32.cosh)),
  asinh: rare('asinh', Math.asinh),
  acosh: rare('acosh', Math.acosh),
  atanh: rare('atanh', Math.atanh),
  log2: rare('log2', Math.log2),
  log10: rare('log10', Math.log10),
  hypot: rare('hypot', Math.hypot, 2, inlinePair(float32.hypot)),
  erfc: rare('erfc', erfc),
  erfinv: rare('erfinv', erfinv),
  lgamma: rare('lgamma', lgamma),
  digamma: rare('digamma', digamma),
  polygamma: rare('polygamma', polygamma, 2),
  i0: rare('i0', (x) => besselI(0, x)),
  i0e: rare('i0e', (x) => scaledBesselI(0, x)),
  i1: rare('i1', (x) => besselI(1, x)),
  i1e: rare('i1e', (x) => scaledBesselI(1, x)),
  besselJ0: rare('besselJ0', (x) => besselJ(0, x)),
  besselJ1: rare('besselJ1', (x) => besselJ(1, x)),
  besselY0: rare('besselY0', (x) => besselY(0, x)),
  besselY1: rare('besselY1', (x) => besselY(1, x)),
  besselK0: rare('besselK0', (x) => besselK(0, x)),
  besselK1: rare('besselK1', (x) => besselK(1, x)),
  scaledBesselK0: rare('scaledBesselK0', (x) => scaledBesselK(0, x)),
  scaledBesselK1: rare('scaledBesselK1', (x) => scaledBesselK(1, x)),
  airyAi: rare('airyAi', airyAi),
  erfcx: rare('erfcx', erfcx),
  ndtri: rare('ndtri', ndtri),
  igamma: rare('igamma', (a, x) => incompleteGamma(a, x, false), 2),
  igammac: rare('igammac', (a, x) => incompleteGamma(a, x, true), 2),
  zeta: rare('zeta', zeta, 2),
  chebyshevT: rare('chebyshevT', (x, n) => chebyshev('T', x, n), 2),
  chebyshevU: rare('chebyshevU', (x, n) => chebyshev('U', x, n), 2),
  chebyshevV: rare('chebyshevV', (x, n) => chebyshev('V', x, n), 2),
  chebyshevW: rare('chebyshevW', (x, n) => chebyshev('W', x, n), 2),
  shiftedChebyshevT: rare('shiftedChebyshevT', (x, n) => shiftedChebyshev('T', x, n), 2),
  shiftedChebyshevU: rare('shiftedChebyshevU', (x, n) => shiftedChebyshev('U', x, n), 2),
  shiftedChebyshevV: rare('shiftedChebyshevV', (x, n) => shiftedChebyshev('V', x, n), 2),
  shiftedChebyshevW: rare('shiftedChebyshevW', (x, n) => shiftedChebyshev('W', x, n), 2),
  hermiteH: rare('hermiteH', hermiteH, 2),
  hermiteHe: rare('hermiteHe', hermiteHe, 2),
  laguerre: rare('laguerre', laguerre, 2),
  legendre: rare('legendre', legendre, 2),
}

/** All scalar operations. */
export const scalarOps: Readonly<Record<ScalarOp, ScalarOpRecord>> = { ...commonOps, ...rareOps }
