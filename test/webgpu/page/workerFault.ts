/** The fault of the worker: one of those in faultList.ts. */
export const WORKER_FAULT = 'a cosine of the other sign'
