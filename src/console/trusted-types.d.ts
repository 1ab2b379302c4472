// What the console uses of Trusted Types, which the DOM's types lack. A trusted address is taken for the text that it is,
// as the constructor of a worker declares it.

interface TrustedScriptPolicy {
  createScriptURL(url: string): string
}

interface TrustedScriptPolicies {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): TrustedScriptPolicy
}

interface Window {
  /** Undefined in browsers without Trusted Types. */
  readonly trustedTypes: TrustedScriptPolicies | undefined
}
