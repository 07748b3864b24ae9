// Browsers start no workers from file://, which the search of this site needs. There, run the worker in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source === inner) this.deliver(event.data);
      });
      const load = (one) => `new Promise((done) => { const script = document.createElement("script"); script.src = ${one};
        script.onload = done; document.body.append(script); })`;
      inner.document.open();
      inner.document.write(`<!doctype html><body><script>
        postMessage = parent.postMessage.bind(parent);
        importScripts = (...urls) => urls.reduce((last, url) => last.then(() => ${load("url")}), Promise.resolve());
        </script></body>`);
      inner.document.close();
      this.ready = new Promise((done) => {
        const script = inner.document.createElement("script");
        script.src = url;
        script.onload = done;
        inner.document.body.append(script);
      });
    }
    deliver(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
