// The search of the site runs in a worker, and browsers start none from a page that was opened as a file. There this
// runs it in a hidden frame: messages to the frame and back take the place of those to the worker.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      const script = inside.document.createElement("script")
      script.src = url
      this.ready = new Promise(done => script.addEventListener("load", done))
      this.deliver = data => inside.dispatchEvent(new inside.MessageEvent("message", { data }))
      inside.document.body.append(script)
    }

    postMessage(data) {
      this.ready.then(() => this.deliver(data))
    }

    terminate() {}
  }
}
