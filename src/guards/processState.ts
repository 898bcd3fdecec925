// The state of the process on which recorded calls depend: modes, the default dtype, and the random generator.
import { anomaly, autocastText, isGradEnabled } from '../autograd/index.ts'
import { devices, dispatchState, withDevice } from '../dispatch/index.ts'
import { computingKey, currentComputing, withComputing } from '../kernels/index.ts'
import type { Computing, DType } from '../kernels/index.ts'
import { defaultGenerator, getDefaultDtype, withDefaultDtype } from '../tensor/index.ts'
import type { Device, GeneratorState } from '../tensor/index.ts'
import { onOff, wasIs } from './stateKind.ts'
import type { SegmentKind, StateKind } from './stateKind.ts'

export const gradMode: StateKind<null, boolean> = {
  name: 'the grad mode',
  compile: 'call',
  read: isGradEnabled,
  key: () => (isGradEnabled() ? 'grad' : ''),
  ...wasIs('the grad mode', onOff),
}

export const recording: StateKind<null, boolean> = {
  name: 'whether the operator is recorded for gradients',
  compile: 'operator',
  read: () => dispatchState.recording,
  key: () => String(dispatchState.recording),
  show: (value) => (value ? 'with gradients' : 'without gradients'),
  change: (was, is) => `was called ${was ? 'with' : 'without'} gradients, is now called ${is ? 'with' : 'without'}`,
}

export const defaultDtype: SegmentKind<DType> = {
  name: 'the default dtype',
  code: 'defaultDtype',
  compile: 'segment',
  read: getDefaultDtype,
  key: getDefaultDtype,
  ...wasIs<DType>('the default dtype', String),
  within: withDefaultDtype,
}

/** Whether deterministic algorithms are on, and what `options` of compile say. */
export const computingMode: SegmentKind<Computing> = {
  name: 'the accuracy or the emitter',
  code: 'computing',
  compile: 'segment',
  read: currentComputing,
  key: () => computingKey(currentComputing()),
  ...wasIs<Computing>('the accuracy or the emitter', computingKey),
  within: withComputing,
}

/** Where operators make tensors: the device of the call that is running. */
export const place: SegmentKind<Device> = {
  name: 'the device',
  code: 'device',
  compile: 'segment',
  read: () => devices.here,
  key: () => devices.here,
  ...wasIs<Device>('the device', String),
  within: withDevice,
}

export const anomalyMode: StateKind<null, boolean> = {
  name: 'anomaly mode',
  compile: 'program',
  read: () => anomaly.enabled,
  key: () => (anomaly.enabled ? 'anomaly' : ''),
  ...wasIs('anomaly mode', onOff),
}

export const autocastMode: StateKind<null, string> = {
  name: 'autocast',
  compile: 'program',
  read: autocastText,
  key: autocastText,
  ...wasIs('autocast', String),
}

/** Of the process, at a call. */
export const processState: readonly StateKind<null>[] = [gradMode, defaultDtype, computingMode, anomalyMode, autocastMode]
/** Those by which compile chooses among what it has recorded. */
export const callState: readonly StateKind<null>[] = processState.filter((kind) => kind.compile === 'call')
/** Of the process, at an operator. */
export const operatorState: readonly StateKind<null>[] = [recording]
/** Those to which graphs belong. */
export const segmentState: readonly SegmentKind[] = [defaultDtype, computingMode, place]

/** Runs `fn` with these values of the `segmentState`. */
export const underSegmentState = <T>(values: readonly unknown[], fn: () => T): T =>
  segmentState.reduce<() => T>((inner, kind, i) => () => kind.within(values[i], inner), fn)()

const generator: StateKind<null, GeneratorState> = {
  name: 'the state of the random generator',
  compile: 'input',
  read: () => defaultGenerator.getState(),
  key: () => JSON.stringify(defaultGenerator.getState()),
  ...wasIs<GeneratorState>('the state of the random generator', ({ seed, offset }) => `seed ${seed}, offset ${offset}`),
}

export const inputState: readonly StateKind<null>[] = [generator]
